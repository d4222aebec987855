"""What the report of each command consists of, as an outline; a file is named after its command.

To add one, imitate `gates.py`. Every format draws it; `pytest tests/report` looks at all of them.
"""
