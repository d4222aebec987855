"""Pictures of a report: one file each, found by `discover.py`, the same for every format that people read.

To add one, imitate a neighbour, which takes what it draws from the report and says when there is nothing to draw;
`pytest tests/report` looks at all of them.
"""
