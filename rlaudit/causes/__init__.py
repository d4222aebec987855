"""What can be wrong: one cause a file.

To add one, imitate `chunk_boundary.py` (it grows with a covariate) or `other_base.py` (the numbers themselves show it):
bind CAUSE with its signature in the data, the columns and the least data that it needs, when it is wrong and the next
step. `penalty.py` is one of meaning, which is looked for at an earlier `stage`. A basis of zeros excludes the cause,
`NotTested` leaves it open. What else leaves its signature stands in its `rivals`, each with the pattern that tells it:
while one fits, the cause is not named. The fault by which the self-test plants it is a file of the same name in
`tests/selftest/faults`. `pytest tests/attribution tests/worlds tests/selftest` holds it against the others: its top
dose must be named, and nothing else, and doses must differ in every world, small ones as well. What
`.ci/evidence/known_policy` plants by hand or not is listed in the tests of `.ci`.
`tests/diagnosis/test_degenerate_tables.py` and `test_sound_nulls.py` check that tables without a fault show no cause.
These try one world each. What decides is `python -m evidence.selftest --causes NAME --trials 8` in the folder `.ci`, on
worlds that no threshold was tuned for. Case studies move where it is tested or named: `UPDATE_EXAMPLES=1 pytest
tests/examples/test_case_studies.py`, then `git diff examples`.
"""
