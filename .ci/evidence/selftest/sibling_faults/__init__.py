"""What is planted where samples of one prompt, their ids and one logprob a token are all there is: one file each.

To add one, imitate a neighbour; `pytest tests/selftest/test_sibling_trials.py` asks that it is found.
"""
