"""One folder or file per dialect: how it is recognised, where its settings are, what its own code makes of them.

To add one, imitate `axolotl.py`, and `skyrl/` where it is too much for a file: bind DIALECT, and fill a Draft
(`configs/draft.py`) with what arrives at the engine and what the trainer does, each with its place in the file. Source
and commit of the framework's code stand in the docstring. `pytest tests/configs/dialects tests/inspection` is what
exists; beside it goes a test of its own there, and a case under examples/FRAMEWORK/, whose expected output
`UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py` writes.
"""
