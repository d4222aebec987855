"""What a report tells its reader to run can be pasted."""

import re
from pathlib import Path

import pytest
from printed_commands import check, commands_of
from simulated_audit import findings
from yaml_tables import yaml_table

from rlaudit.rules import known_rules
from rlaudit.rules.advisories import known_advisories
from rlaudit.rules.audit.trial import Trial

ROOT = Path(__file__).parents[2]
VERDICTS = yaml_table(ROOT / "tests" / "rules" / "verdicts.yaml")
PRINTED = sorted(path for name in ("expected.txt", "*.md") for path in (ROOT / "examples").rglob(name))
CONFIRM = re.compile(r"^\s*confirm: (.*)$|^\s*Confirm: `(.*)`$", re.MULTILINE)
NEXT = re.compile(r"^\s*next:? (.*)$|^\*\*Next:\*\* (.*)$", re.MULTILINE)


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_commands_that_an_example_prints_can_be_pasted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = [found for pair in CONFIRM.findall(text) for found in pair if found]
    for pair in NEXT.findall(text):
        commands += commands_of(pair[0] or pair[1])
    for command in commands:
        check(command)


@pytest.mark.parametrize("rule", VERDICTS)
def test_the_experiment_of_a_rule_can_be_pasted(rule: str) -> None:
    configs = (config for cases in VERDICTS[rule].values() for case in cases for config in [next(iter(case.values()))])
    for config in configs:
        for finding in findings(known_rules()[rule], config):
            if finding.confirm:
                check(finding.confirm)


def test_the_experiments_of_advisories_can_be_pasted() -> None:
    trials = [one.confirm for one in known_advisories().values() if isinstance(one.confirm, Trial)]
    assert trials
    for trial in trials:
        check(trial.words.partition(" (")[0])
