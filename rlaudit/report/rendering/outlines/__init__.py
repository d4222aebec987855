"""What the report of each command consists of, as an outline; a file is named after its command.

To add a section, add a `Section` to the outline of its command. It draws a field of a record in `report/parts/`, which
the `of_*.py` of the command in `report/` fills; its sentences come from `rlaudit/diagnosis`. A new figure of `compare`
is counted where the log is read, a part at a time (Counts of `diagnosis/read_log.py`), and kept in
`parts/comparison.py`. It moves examples: `UPDATE_EXAMPLES=1 pytest tests/examples`, then `git diff`. To add a kind of
report, imitate `gates.py`, and name it in PARTS_WITH_OUTLINES (`outline.py`), `subject_of` (`picture.py`), `report.py`
and tests/report/test_outline.py. Every format draws what an outline has.
"""
