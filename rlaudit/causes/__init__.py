"""What can be wrong: one cause a file.

To add one, imitate `chunk_boundary.py`: bind CAUSE with its signature in the data (or the covariates in which its
excess grows), the columns and the least data that it needs, what would refute it, the next step, and the fault by
which the self-test plants it. `pytest tests/attribution tests/worlds tests/selftest/test_trials.py` holds it against
the others: its top dose must be named, and nothing else. Case studies move where it is tested or named:
`UPDATE_EXAMPLES=1 pytest tests/examples/test_case_studies.py`, then `git diff examples`. `rlaudit selftest --causes
NAME` says how often it is found.
"""
