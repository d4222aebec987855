"""What each rule says of a config, one table for all rules: severity, whether a fix is offered and safe, and words."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from simulated_audit import findings
from yaml_tables import yaml_table

from rlaudit.rules import known_rules
from rlaudit.rules.audit.finding import Finding

SILENT = "silent"


def rows() -> Iterator[Any]:
    """The rows of verdicts.yaml: rule, what it says (`warning with a safe fix`, several by commas), config, words."""
    table = yaml_table(Path(__file__).with_name("verdicts.yaml"))
    for rule, sentences in table.items():
        for sentence, cases in sentences.items():
            for number, case in enumerate(cases):
                (said, config), *_ = case.items()
                words = [listed(case.get("says")), listed(case.get("never"))]
                yield pytest.param(rule, said, config, *words, id=f"{rule}: {sentence} {number}")


def listed(words: str | Sequence[str] | None) -> Sequence[str]:
    return [words] if isinstance(words, str) else words or []


def verdict(finding: Finding, with_fix: bool) -> str:
    if not with_fix:
        return str(finding.severity)
    fix = "no fix" if finding.fix is None else "a safe fix" if finding.fix.safe else "an unsafe fix"
    return f"{finding.severity} with {fix}"


@pytest.mark.parametrize(("rule", "said", "config", "says", "never"), list(rows()))
def test_a_rule_says_of_a_config_what_the_table_says(
    rule: str, said: str, config: dict[str, Any], says: Sequence[str], never: Sequence[str]
) -> None:
    found = findings(known_rules()[rule], config)
    assert (", ".join(verdict(one, " with " in said) for one in found) or SILENT) == said
    message = " ".join(one.message for one in found)
    assert [word for word in says if word not in message] == []
    assert [word for word in never if word in message] == []
