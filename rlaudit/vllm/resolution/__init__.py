"""One file per value that vLLM decides by itself where the config leaves it open.

To add one, imitate `seed.py`, or `block_size.py` for one that depends on the machine: bind RESOLUTION with the
functions of vLLM that decide, and `apply`, which says what they make of a config, or why that cannot be told. `pytest
tests/vllm_releases` tries it; the functions get a fingerprint per release by `python -m extract_catalogue` in .ci, so
that a release that changes one of them names the rule. A value that moves between two releases moves the examples:
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py`, then `git diff examples`.
"""
