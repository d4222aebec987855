"""One file per rule: what in a config makes a rollout's logprobs another thing, and in which releases.

To add one, imitate `seed_changed.py`: bind RULE (name, layer, check; defaults, where it speaks of one that moved), and
write the docstring by its headings (What changed, Why it matters, Example, Safe to ignore when, How to confirm),
because it is what `rlaudit explain` prints and its example, in the form of `tests/simulated_audit.py`, is run as a
test. What the rule says of other configs is a row each of `tests/rules/verdicts.yaml`. `pytest tests/rules
tests/inspection` is the rest. A rule that speaks of the example configs moves what they are said to print: look at `git
diff examples` after `UPDATE_EXAMPLES=1 pytest tests/examples/test_inspect_examples.py`. A release that decides
something for more than one rule stands in `vllm/milestones.py`.
"""

from collections.abc import Mapping
from functools import lru_cache

from rlaudit.discover import discover
from rlaudit.rules.advisories import known_advisories
from rlaudit.rules.advisories.advisory import rule_of
from rlaudit.rules.audit.rule import Rule


@lru_cache(maxsize=1)
def known_rules() -> Mapping[str, Rule]:
    """Return every rule by name: those of files, and advisories without a file of the same name."""
    from rlaudit import rules

    advisories = {name: rule_of(advisory) for name, advisory in known_advisories().items()}
    return {**advisories, **discover(rules, "RULE", Rule)}
