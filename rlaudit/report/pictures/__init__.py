"""Pictures of a report: one file each, found by `discover.py`, the same for every format that people read."""
