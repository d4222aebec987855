"""One file per format that logged rollouts come in; each binds EXPORT.

To add one, imitate `open_instruct.py`, or `prime_rl.py` where the trainer's logprobs are logged as well: recognise a
file by its content, and read it in whole sequences. Source and line of the code that writes it stand in the docstring.
`pytest tests/tokens/test_exports.py` asks for a record as the framework writes it (FILES), and for one that
tests/hostile_tables.py can break (DUMPS); nothing else moves.
"""
