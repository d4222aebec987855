"""Every rule's docstring is complete, and its example is real."""

import inspect
import re
import sys
from dataclasses import dataclass

import pytest
import yaml
from simulated_audit import findings, fixed, laid_over

from rlaudit import rules
from rlaudit.discover import discover
from rlaudit.laboratory.recipe import recipe_folders
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.rules.audit.rule import Rule

SECTIONS = ("What changed", "Why it matters", "Example", "Safe to ignore when", "How to confirm")
RULES = discover(rules, "RULE", Rule)
EVERY_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


@dataclass(frozen=True)
class Documentation:
    """A rule's docstring, taken apart."""

    sentence: str
    sections: dict[str, str]

    def example(self, name: str) -> dict:
        """One of the two YAML examples."""
        found = re.search(rf"^{name}:\n\n((?:    .*\n|\n)+)", self.sections["Example"] + "\n", re.MULTILINE)
        assert found, f"the example has no part {name!r} with YAML indented below it"
        return yaml.safe_load(inspect.cleandoc(found[1]))

    @property
    def reported(self) -> dict:
        return self.example("Reported")

    @property
    def instead(self) -> dict:
        return laid_over(self.reported, self.example("Use instead"))


def documentation(rule: Rule) -> Documentation:
    text = inspect.getdoc(sys.modules[rule.check.__module__]) or ""
    sentence, *rest = re.split(rf"^({'|'.join(SECTIONS)})$", text, flags=re.MULTILINE)
    sections = dict(zip(rest[::2], map(inspect.cleandoc, rest[1::2]), strict=True))
    return Documentation(sentence.strip(), sections)


@EVERY_RULE
def test_a_rule_is_named_after_its_file(rule: Rule) -> None:
    assert rule.check.__module__ == f"rlaudit.rules.{rule.name.replace('-', '_')}"


@EVERY_RULE
def test_a_docstring_begins_with_a_sentence_and_has_every_section_in_order(rule: Rule) -> None:
    documented = documentation(rule)
    first_line = documented.sentence.splitlines()[0]
    assert first_line.endswith((".", "?")), first_line
    assert tuple(documented.sections) == SECTIONS
    assert all(documented.sections.values()), "an empty section"


@EVERY_RULE
def test_a_rule_reports_its_own_example(rule: Rule) -> None:
    reported = findings(rule, documentation(rule).reported)
    assert reported
    assert {finding.rule for finding in reported} == {rule.name}
    assert all(finding.message.endswith((".", "?")) for finding in reported)


@EVERY_RULE
def test_a_rule_is_silent_on_what_it_tells_to_use_instead(rule: Rule) -> None:
    assert [finding.message for finding in findings(rule, documentation(rule).instead)] == []


@EVERY_RULE
def test_a_fix_ends_what_it_was_offered_for(rule: Rule) -> None:
    example = documentation(rule).reported
    for finding in findings(rule, example):
        if finding.fix is not None:
            left = findings(rule, fixed(example, finding.fix))
            assert not [other for other in left if other.setting == finding.setting], finding.fix.description


@EVERY_RULE
def test_how_to_confirm_names_only_factors_and_recipes_that_exist(rule: Rule) -> None:
    text = documentation(rule).sections["How to confirm"]
    recipes = {path.stem for folder in recipe_folders() for path in folder.glob("*.yaml")}
    assert set(re.findall(r"factors? `([a-z0-9-]+)`", text)) <= set(known_factors())
    assert set(re.findall(r"`rlaudit ablate ([a-z0-9-]+)`", text)) <= recipes
