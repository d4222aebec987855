"""What rules, advisories and suppression findings say of themselves, without importing all of them for one."""

import importlib
import importlib.util
import inspect
from types import ModuleType

from rlaudit.inspection.advisory import Advisory
from rlaudit.inspection.suppression import RULES


def rule_documentation(name: str) -> str | None:
    """The documentation of a rule or an advisory, its first line a sentence; None for any other name."""
    if name in RULES:
        return RULES[name]
    rule, advisory = _offered("rules", name), _offered("advisories", name)
    said = [inspect.getdoc(rule) or ""] if rule is not None else []
    if advisory is not None:
        said += [*([] if rule is not None else [inspect.getdoc(advisory) or ""]), _facts(advisory.ADVISORY)]
    return "\n\n".join(said) or None


def _offered(package: str, name: str) -> ModuleType | None:
    """The file of a package that is named after what it offers."""
    module = f"rlaudit.{package}.{name.replace('-', '_')}"
    if not name.replace("-", "").replace("_", "").isalnum() or importlib.util.find_spec(module) is None:
        return None
    return importlib.import_module(module)


def _facts(advisory: Advisory) -> str:
    window = advisory.window
    edges = {"Last without": window.before, "First with": window.first, "Last with": window.last}
    edges["First without"] = window.fixed
    lines = [
        f"Affected:       {window}",
        f"Layer:          {advisory.layer}",
        f"It takes that:  {'; '.join(one.says for one in advisory.conditions)}",
        *(f"Silent where:   {one.says}" for one in advisory.workarounds),
        f"Way out:        {advisory.way_out}",
        f"Confirm:        {advisory.confirm}",
        *(
            f"{f'{edge}:':<16}{seen.release}, {seen.at}: {seen.says}"
            for edge, seen in edges.items()
            if seen is not None
        ),
        f"Threads:        {', '.join(advisory.threads) or 'none known'}",
    ]
    return "\n".join(lines)
