"""Plain vLLM: its commands, config files, Python classes, recordings, and what a running server reports.

A framework is declared instead, in a YAML file of `rlaudit/configs/dialects/frameworks/` (`rlaudit explain dialects`).
To add a file here, write its test in tests/configs and a case under examples/vllm/, whose expected output
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes, and run `pytest tests/configs`.
"""
