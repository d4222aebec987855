"""Output formats: one file each, all rendered from the same report (rlaudit-report/1).

To add one, imitate `concise.py`, or `markdown.py` for one that draws the whole outline: bind FORMAT, whose name is the
word that `--output` takes and is that of the file. A format draws what the outline has, and judges nothing. `pytest
tests/report tests/test_discover.py` tries it; the help of `--output` names the formats.
"""
