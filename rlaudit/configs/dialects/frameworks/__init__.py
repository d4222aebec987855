"""One YAML file per framework, and beside some of them a Python file with what YAML cannot say.

To add a framework, imitate `axolotl.yaml` (a YAML file) or `openrlhf.yaml` (options of a launch script), and run
`rlaudit inspect --dialect FILE.yaml CONFIG`. A case under examples/FRAMEWORK/ goes with it, whose expected output
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes. `rlaudit explain dialects` documents the
file's keys.

What it reads is checked by `tests/dialects/readings/FRAMEWORK.yaml`. Besides, `rlaudit/topics/configs.md` and
`trust.md` list the frameworks by name, `recording/shipped/rlaudit_frameworks.py` those whose trainer is recorded, and
`configs/not_read.yaml` those whose engine is not read.
"""
