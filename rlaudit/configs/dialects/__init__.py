"""vLLM's own commands, files, calls and reports: how each is recognised, and what arrives of its settings.

A framework is declared instead, in a YAML file of `rlaudit/dialects/frameworks/` (`rlaudit explain dialects`). To add a
file here, write its test in tests/configs/dialects and a case under examples/vllm/, whose expected output
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes, and run `pytest tests/configs/dialects`.
"""
