"""Pictures of a report: one file each, found by `discover.py`, the same for every format that people read.

To add one, imitate a neighbour: it takes what it draws from the report, and says why if it draws nothing. `pytest
tests/report` looks at all of them.
"""
