"""The documentation of rules, advisories and suppression findings; no other rule is imported for one."""

import importlib
import importlib.util
import inspect
import textwrap

from rlaudit.advisories import known_advisories
from rlaudit.advisories.advisory import Advisory
from rlaudit.inspection.suppression import RULES

WIDTH = 120  # of docstrings in this repository


def rule_documentation(name: str) -> str | None:
    """Return the documentation of a rule or an advisory, its first line a sentence; None for any other name."""
    if name in RULES:
        return RULES[name]
    about, advisory = _about_rule(name), known_advisories().get(name)
    if advisory is None:
        return about
    return f"{about if about is not None else advisory.about}\n\n{_facts(advisory)}"


def _about_rule(name: str) -> str | None:
    """Return the docstring of the file of rlaudit/rules/ that is named after a rule."""
    module = f"rlaudit.rules.{name.replace('-', '_')}"
    if not name.replace("-", "").replace("_", "").isalnum() or importlib.util.find_spec(module) is None:
        return None
    return inspect.getdoc(importlib.import_module(module))


def _facts(advisory: Advisory) -> str:
    window = advisory.window
    edges = {"Not yet in": window.before, "Came with": window.first, "Still in": window.last}
    edges["Mended in"] = window.fixed
    facts = [
        ("Affected", str(window)),
        ("Layer", str(advisory.layer)),
        ("Happens if", "; ".join(condition.says for condition in advisory.conditions)),
        *(("Not named if", workaround.says) for workaround in advisory.workarounds),
        ("Way out", advisory.way_out),
        ("Confirm", advisory.confirm),
        *((edge, f"{seen.release}, {seen.at}: {seen.says}") for edge, seen in edges.items() if seen is not None),
        ("Threads", ", ".join(advisory.threads) or "none known"),
    ]
    return "\n".join(_entry(name, text) for name, text in facts)


def _entry(name: str, text: str) -> str:
    return textwrap.fill(
        f"{name + ':':<16}{text}", WIDTH, subsequent_indent=" " * 16, break_long_words=False, break_on_hyphens=False
    )
