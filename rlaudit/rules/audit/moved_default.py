"""A default that moved between two versions under a config that leaves it to vLLM."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.rules.audit.audit import Audit, audit_of
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.rollout_config import Origin, Setting
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


@dataclass(frozen=True)
class MovedDefault:
    """One engine argument as vLLM decides it before and after; its `value` is None if a release lacks it."""

    before: Setting
    after: Setting


def left_to_vllm(audit: Audit, name: str) -> bool:
    """Return whether vLLM alone decides an engine argument in both releases.

    A written `false` that the dialect drops counts as set: `written-false-dropped` speaks about it.
    """
    if any(lost.name == name for lost in audit.config.lost):
        return False
    sides = (audit.before.engine(name), audit.after.engine(name))
    return all(setting.origin is Origin.ENGINE and setting.written is None for setting in sides)


def moved_default(audit: Audit, name: str) -> MovedDefault | None:
    """Return the default if both sides know it and differ; None if it is set, stays, or is not known."""
    if not audit.migrates or not left_to_vllm(audit, name) or audit.only_reported(name):
        return None
    before, after = audit.before.engine(name), audit.after.engine(name)
    if isinstance(before.value, Unknown) or isinstance(after.value, Unknown) or before.value == after.value:
        return None
    return MovedDefault(before, after)


def why_not_comparable(audit: Audit, name: str) -> str | None:
    """Return why vLLM's default cannot be compared.

    None if it can be, if it is false after the migration, if something sets the argument, or if nothing migrates.
    """
    if not audit.migrates or not left_to_vllm(audit, name) or audit.after.engine(name).value is False:
        return None
    for side in (audit.before, audit.after):
        value = side.engine(name).value
        if isinstance(value, Unknown):
            return f"Its default in {engine_of(side)} is not known: {value.reason}"
    return None


def switched_on(
    rule: Rule, audit: Audit, name: str, confirm: Trial, finding_of: Callable[[Audit], Finding]
) -> Iterator[Finding]:
    """Yield a finding about a switch that nothing sets: `finding_of` the audit if it turns on, a note if it may."""
    reason = why_not_comparable(audit, name)
    if reason is not None:
        yield rule.finding(audit, Severity.NOTE, name, f"Nothing sets {name}. {reason}.", confirm=confirm)
        return
    if isinstance(audit.config.engine, Elsewhere) and name not in audit.config.engine:
        moved = moved_default(_as_if_complete(audit), name)
        if moved is not None and moved.after.value is True:
            version = audit.after.version
            message = f"This file does not show whether {name} is set. If nothing sets it, vLLM {version} turns it on."
            yield rule.finding(audit, Severity.NOTE, name, message, confirm=confirm)
        return
    moved = moved_default(audit, name)
    if moved is not None and moved.after.value is True:
        yield finding_of(audit)


def _as_if_complete(audit: Audit) -> Audit:
    """Return the audit of this file alone, as if no other file set anything."""
    before, after = (replace(side.config, engine=dict(side.config.engine)) for side in (audit.before, audit.after))
    return audit_of(before, after, (audit.before.version, audit.after.version), audit.after.machine)


def restores(audit: Audit, name: str, value: Any) -> bool:
    """Return whether setting an engine argument to `value` only writes down what runs before the migration.

    A release without the argument behaves as one with a false switch.
    """
    if not audit.migrates:
        return False
    before = audit.before.engine(name).value
    return bool(not isinstance(before, Unknown) and (before == value or (before is None and value is False)))
