"""One file per rule: what in a config makes a rollout's logprobs another thing, and in which releases.

To add one, imitate `seed_changed.py`: bind RULE (name, layer, check; defaults, where it speaks of one that moved), and
write the docstring by its headings (What changed, Why it matters, Example, Safe to ignore when, How to confirm),
because it is what `rlaudit explain` prints and its example, in the form of `tests/simulated_audit.py`, is run as a
test. What the rule says of other configs is a row each of `tests/rules/verdicts.yaml`. `pytest tests/rules
tests/inspection` is the rest. A rule that speaks of the example configs moves what they are said to print: look at `git
diff examples` after `UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py`. A release that decides
something for more than one rule stands in `vllm/milestones.py`.
"""
