"""What each rule says of a config, one table for all rules: severities, and whether a fix is offered and safe."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from simulated_audit import findings

from rlaudit.inspection.finding import Finding
from rlaudit.inspection.selection import known_rules

SILENT = "silent"


def rows() -> Iterator[Any]:
    """The rows of verdicts.yaml: rule, what is said of it (`warning with a safe fix`, several by commas), config."""
    table = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text(encoding="utf-8"))
    for rule, sentences in table.items():
        for sentence, cases in sentences.items():
            for number, case in enumerate(cases):
                ((said, config),) = case.items()
                yield pytest.param(rule, said, config, id=f"{rule}: {sentence} {number}")


def verdict(finding: Finding, with_fix: bool) -> str:
    if not with_fix:
        return str(finding.severity)
    fix = "no fix" if finding.fix is None else "a safe fix" if finding.fix.safe else "an unsafe fix"
    return f"{finding.severity} with {fix}"


@pytest.mark.parametrize(("rule", "said", "config"), list(rows()))
def test_a_rule_says_of_a_config_what_the_table_says(rule: str, said: str, config: dict[str, Any]) -> None:
    found = findings(known_rules()[rule], config)
    assert (", ".join(verdict(one, " with " in said) for one in found) or SILENT) == said
