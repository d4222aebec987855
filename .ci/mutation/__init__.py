"""Would the tests notice if a decision were another one? Mutants of what decides, each against the tests that run it.

    cd .ci && python -m mutation --draw 200 --seed 7                 # of every package, as many of each
    cd .ci && python -m mutation --draw 40 statistics rules          # of two
    cd .ci && python -m mutation --only rlaudit/statistics/estimate.py:88

A mutant is one change of one decision in the syntax tree: a comparison, an operator, `and`, `or`, `not`, a number
(n + 1, twice as much), a switch, or a returned bool turned round (mutants.py). Which tests run a line is known from one
run under coverage (tests_of_lines.py), which is kept in --cache and repeated for test files that changed; for all if a
module changed. Each mutant lives in a process of its own and replaces its module as it is imported (trial.py): no file
is written. Killed: a test failed, or the tests did not end in their time. Survived: all passed, or no test runs the
line. Processes that a test starts have the module as it is, and so have lines that only those reach.
"""
