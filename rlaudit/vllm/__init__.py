"""What each vLLM release takes, defaults to and decides by itself.

To add a release, run `python -m extract_catalogue --download VERSION` in .ci: it adds to the tables of data/facts (what
a release declares, by kind), and names the resolution rules whose functions changed. Then read the lines of every
advisory that is open at the newest release again, and move its `last` (`pytest tests/advisories` names them). A release
without a CPU build goes into WITHOUT_CPU_BUILD of tests/vllm_releases/test_published_builds.py, the newest one's number
into README and the topics that name it.
"""
