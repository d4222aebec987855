"""One folder or file per dialect: how it is recognised, where its settings are, what its own code makes of them.

A framework is declared instead, in a YAML file of `rlaudit/dialects/frameworks/` (`rlaudit explain dialects`); the
files here read vLLM's own commands and calls. To add one, write its test in tests/configs/dialects and a case under
examples/FRAMEWORK/, whose expected output `UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes,
and run `pytest tests/configs/dialects tests/inspection`.
"""
