"""A framework samples with another default in the release that the new vLLM needs, and the config does not say which.

What changed
    Nothing in vLLM. A new vLLM needs a new release of the framework, whose own defaults differ: TRL's temperature is
    0.9 before 0.18 and 1.0 from then on, its top_k 50 before 0.18 and off later.

Why it matters
    The policy explores another distribution from the day of the migration on, and nothing in the config changed. A
    curve that moves then is easily put down to vLLM.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        sampling: {temperature: 1.0, top_k: 0}
        set_by_framework: [temperature, top_k]
        at_from: {sampling: {top_k: 50}}

    Use instead:

        set_by_framework: [temperature]
        sampling: {top_k: 50}

Safe to ignore when
    Today's release of the framework has the new default already.

How to confirm
    Print the sampling parameters that the framework sends, before and after; `rlaudit ablate quick` with both.
"""

from collections.abc import Iterator
from typing import Any

from rlaudit.configs.rollout_config import Origin, Setting
from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING


def check(audit: Audit) -> Iterator[Finding]:
    """Parameters that the framework's code decides on both sides, each in its own way."""
    for name in NEUTRAL_SAMPLING if audit.migrates else ():
        before, after = (side.config.sampling for side in (audit.before, audit.after))
        if name not in before or name not in after or not (_by_code(before[name]) and _by_code(after[name])):
            continue
        old, new = _effect(before[name].value), _effect(after[name].value)
        if isinstance(new, Unknown) or old == new:
            continue
        where = f"the release that vLLM {audit.after.version} needs"
        if isinstance(old, Unknown):
            message = f"{name} is not written, and {where} samples with {new}; today's cannot be told: {old.reason}."
            yield RULE.finding(audit, Severity.NOTE, name, message)
            continue
        message = f"{name} is not written: the framework samples with {old} today, and with {new} in {where}. Write it."
        yield RULE.finding(audit, Severity.WARNING, name, message)


def _by_code(setting: Setting) -> bool:
    return setting.origin is Origin.FRAMEWORK and setting.place is None


def _effect(value: Any) -> Any:
    """None and -1 are spellings of a top_k that cuts nothing off; no other parameter takes them."""
    return 0 if value is None or value == -1 else value


RULE = Rule("sampling-moved-by-framework", Layer.SEMANTIC, check)
