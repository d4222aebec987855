"""What the config leaves to its framework differs between the framework's releases that the two vLLM versions need.

What changed
    A vLLM release often forces the framework's: TRL that runs vLLM 0.18.1 is not the TRL that ran 0.8.5. TRL's default
    temperature was 0.9 before 0.18 and is 1.0 since; its correction by importance sampling came on by default.
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

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.rollout_config import Setting
from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import FILTERS, Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer

# What else bends the distribution of the rollouts.
DISTRIBUTION = {"temperature", "repetition_penalty", "presence_penalty", "frequency_penalty", *FILTERS}
OF_THE_LOSS = ("importance_sampling_correction",)


def check(audit: Audit) -> Iterator[Finding]:
    """One finding for all that moved, and one for what may have."""
    if not audit.migrates:
        return
    before, after = audit.before.config, audit.after.config
    left = [(name, *pair) for name, pair in _left_open(before.sampling, after.sampling).items() if name in DISTRIBUTION]
    left += [(name, *pair) for name, pair in _left_open(before.trainer, after.trainer).items() if name in OF_THE_LOSS]
    moved = [(name, was, now) for name, was, now in left if not isinstance(was, Unknown) and was != now]
    if moved:
        listed = ", ".join(f"{name} {_text(was)} -> {_text(now)}" for name, was, now in moved)
        message = (
            f"Left to the framework, and different in its release that vLLM {audit.after.version} needs: {listed}. "
            "Write what you mean."
        )
        bent = DISTRIBUTION.intersection(name for name, _, _ in moved)
        yield RULE.finding(audit, Severity.WARNING if bent else Severity.NOTE, moved[0][0], message)
    unknown = [(name, was, now) for name, was, now in left if isinstance(was, Unknown)]
    if unknown:
        listed = "; ".join(f"{was.reason}: {_text(now)} with vLLM {audit.after.version}" for _, was, now in unknown)
        message = f"Left to the framework, and perhaps different in the release that runs today: {listed}."
        yield RULE.finding(audit, Severity.NOTE, unknown[0][0], message)


def _left_open(before: Mapping[str, Setting], after: Mapping[str, Setting]) -> dict[str, tuple[Any, Any]]:
    """What no line of a file says, with its value before, which may be unknown, and after."""
    if isinstance(before, Elsewhere) or isinstance(after, Elsewhere):
        return {}
    both = {name: (before[name], now) for name, now in after.items() if name in before}
    return {
        name: (was.value, now.value)
        for name, (was, now) in both.items()
        if was.place is None and now.place is None and was.value is not None and now.value is not None and now.known
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULE = Rule("framework-default-moved", Layer.SEMANTIC, check)
