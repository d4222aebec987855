"""The documentation of rules, advisories and suppression findings; no rule is imported for it."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.discover import offered
from rlaudit.inspection.suppression import RULES

if TYPE_CHECKING:
    from rlaudit.rules.advisories.advisory import Advisory

_ADVISORIES = Path(__file__).parents[1] / "rules" / "advisories"
WIDTH = 120  # of docstrings in this repository


def rule_documentation(name: str) -> str | None:
    """Return the documentation of a rule or an advisory, its first line a sentence; None for any other name."""
    if name in RULES:
        return RULES[name]
    rule = offered("rules", name, "RULE")
    about = rule.documentation if rule is not None else None
    file = _ADVISORIES / f"{name}.yaml"
    if file.parent != _ADVISORIES or not file.is_file():
        return about
    from rlaudit.rules.advisories.advisory import read_advisory

    advisory = read_advisory(file)
    return f"{about if about is not None else advisory.about}\n\n{_facts(advisory)}"


def _facts(advisory: "Advisory") -> str:
    window = advisory.window
    edges = {"Not yet in": window.before, "Came with": window.first, "Still in": window.last}
    edges["Fixed in"] = window.fixed
    facts = [
        ("Affected", advisory.affected),
        ("Layer", str(advisory.layer)),
        ("Happens if", "; ".join(condition.says for condition in advisory.conditions)),
        *(("Not named if", workaround.says) for workaround in advisory.workarounds),
        ("Way out", advisory.way_out),
        ("Confirm", advisory.confirm if isinstance(advisory.confirm, str) else advisory.confirm.words),
        *((edge, f"{seen.release}, {seen.at}: {seen.says}") for edge, seen in edges.items() if seen is not None),
        ("Threads", ", ".join(advisory.threads) or "none known"),
    ]
    return "\n".join(_entry(name, text) for name, text in facts if text)


def _entry(name: str, text: str) -> str:
    return textwrap.fill(
        f"{name + ':':<16}{text}", WIDTH, subsequent_indent=" " * 16, break_long_words=False, break_on_hyphens=False
    )
