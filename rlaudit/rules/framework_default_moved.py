"""The two vLLM versions need other releases of the framework, and its defaults for what the config leaves out differ.

What changed
    A vLLM release often forces the framework's: TRL that runs vLLM 0.18.1 is not the TRL that ran 0.8.5. TRL's default
    temperature was 0.9 before 0.18 and is 1.0 since. Its KL term (`beta`) went from 0.04 to 0, its loss from bnpo to
    dapo, its engine from a server into the trainer. Its correction by importance sampling came on by default.
    Source: trl/trainer/grpo_config.py of both releases; verl's rollout.yaml.

Why it matters
    The rollouts come from another distribution, or the loss has another term, and no line of the config moved. The
    bump is blamed on vLLM.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        framework: trl
        sampling: {temperature: 1.0}
        set_by_framework: [temperature]
        at_from: {sampling: {temperature: 0.9}}

    Use instead:

        set_by_framework: []
        at_from: {sampling: {temperature: 1.0}}

Safe to ignore when
    the same release of the framework runs before and after the bump.

How to confirm
    Print the config that the framework makes of the file (`GRPOConfig(...).temperature`) in both environments.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Origin, Setting
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

CORRECTION = "importance_sampling_correction"


def check(audit: Audit) -> Iterator[Finding]:
    """Report moved sampling parameters, correction and objective, if the framework's code decides both sides."""
    if not audit.migrates:
        return
    before, after = audit.before.config, audit.after.config
    for name in NEUTRAL_SAMPLING:
        yield from _moved(audit, name, before.sampling, after.sampling, Severity.WARNING)
    yield from _moved(audit, CORRECTION, before.trainer, after.trainer, Severity.NOTE)
    for name in after.options:
        yield from _moved(audit, name, before.options, after.options, Severity.WARNING)


def _moved(
    audit: Audit, name: str, before: Mapping[str, Setting], after: Mapping[str, Setting], severity: Severity
) -> Iterator[Finding]:
    if name not in before or name not in after or not (_by_code(before[name]) and _by_code(after[name])):
        return
    old, new = _effect(before[name].value), _effect(after[name].value)
    if isinstance(new, Unknown) or old == new:
        return
    where = f"the release for vLLM {audit.after.version}"
    if isinstance(old, Unknown):
        message = f"Nothing here sets {name}, so the framework's default holds: {_spell(new)} in {where}. "
        message += f"Today's default of {name} is not known: {old.reason}."
        yield RULE.finding(audit, Severity.NOTE, name, message)
        return
    message = (
        f"Nothing here sets {name}, so the framework's default holds: {_spell(old)} today, {_spell(new)} in {where}. "
        "Write the value that you want."
    )
    yield RULE.finding(audit, severity, name, message)


def _by_code(setting: Setting) -> bool:
    return setting.origin is Origin.FRAMEWORK and setting.place is None


def _effect(value: Any) -> Any:
    """Return a value by its effect: None and -1 are a top_k that cuts nothing off; no other parameter takes them."""
    return 0 if value is None or value == -1 else value


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULE = Rule("framework-default-moved", Layer.SEMANTIC, check)
