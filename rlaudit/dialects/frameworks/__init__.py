"""One YAML file per framework, and beside some of them a Python file with what YAML cannot say.

To add a framework, copy the file of one that is like it, and run `rlaudit inspect --dialect FILE.yaml CONFIG`. Beside
it goes a case under examples/FRAMEWORK/, whose expected output `UPDATE_EXAMPLES=1 pytest
tests/examples/test_inspect_examples.py` writes. `rlaudit explain dialects` documents what may stand in the file.

Three places know frameworks by name: how their releases update weights (`audit/update_path.py`), the words by
which a file without a config is named all the same (`inspection/without_config.py`), and the list of
`rlaudit/topics/configs.md`.
"""
