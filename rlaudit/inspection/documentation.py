"""What rules and suppression findings say of themselves, without importing every rule for one of them."""

import importlib
import importlib.util
import inspect

from rlaudit.inspection.suppression import RULES


def rule_documentation(name: str) -> str | None:
    """The documentation of a rule, its first line a sentence; None where there is no such rule."""
    if name in RULES:
        return RULES[name]
    module = f"rlaudit.rules.{name.replace('-', '_')}"
    if not name.replace("-", "").replace("_", "").isalnum() or importlib.util.find_spec(module) is None:
        return None
    return inspect.getdoc(importlib.import_module(module))
