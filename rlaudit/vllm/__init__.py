"""What each vLLM release takes, defaults to and decides by itself.

To add a release, run `python -m extract_catalogue --download VERSION` in .ci: it adds to the tables of data/facts (what
a release declares, by kind), and names the resolution rules whose functions changed. Then read the lines of every
advisory that is open at the newest release again, and move its `last` (`pytest tests/advisories` names them).
"""
