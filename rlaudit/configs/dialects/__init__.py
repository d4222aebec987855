"""One folder or file per dialect: how it is recognised, where its settings are, what its own code makes of them.

A framework is declared instead, in a YAML file of `rlaudit/dialects/frameworks/` (`rlaudit explain dialects`); what
stands here reads vLLM's own commands and calls. `pytest tests/configs/dialects tests/inspection` is what exists; beside
it goes a test of its own there, and a case under examples/FRAMEWORK/, whose expected output
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes.
"""
