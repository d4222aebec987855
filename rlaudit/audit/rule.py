"""A rule: what one file under rules/ offers, and what an advisory becomes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.audit.action import without_fix
from rlaudit.audit.audit import Audit, as_json
from rlaudit.audit.finding import Action, Finding, Fix
from rlaudit.audit.trial import Trial
from rlaudit.layers import Layer
from rlaudit.settings.place import Place
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    layer: Layer
    # Yields the findings of one audit, built by `finding` below.
    check: Callable[[Audit], Iterator[Finding]]
    # Engine arguments whose moved default it reports, so that changed-default does not list them.
    defaults: tuple[str, ...] = ()
    # Severity if the release before the migration lacks the same thing, for a rule about what a release lacks.
    already: Severity | None = None

    def finding(
        self, audit: Audit, severity: Severity, setting: str, message: str, fix: Fix | None = None,
        confirm: str | Trial = "", place: Place | None = None, by: Sequence[str] = (), action: Action | None = None,
    ) -> Finding:  # fmt: skip
        """Return a finding at the place of `setting`, else of the first of `by` that is written.

        confirm: the experiment that shows whether it holds, or in words what else does.
        """
        where = place or audit.place(setting, by)
        action = action or without_fix(audit, setting, where.setting)
        line = audit.config.decided.get(setting)
        message = message if line is None else f"{message} What decides: {line}."
        value = _value(audit, setting)
        finding = Finding(self.name, self.layer, severity, message, where, setting, value, fix, action=action)
        if isinstance(confirm, str):
            return replace(finding, look=confirm)
        return replace(finding, confirm=confirm.command(audit), look=confirm.look, trial=confirm)


def _value(audit: Audit, setting: str) -> str:
    """Return a setting's value as text, by which code scanning recognises the finding in another commit."""
    if audit.after.exists(setting):
        return _as_text(audit.after.engine(setting).value)
    for settings in (audit.config.sampling, audit.config.environment, audit.config.trainer):
        if setting in settings:
            return _as_text(settings[setting].value)
    return ""


def _as_text(value: Any) -> str:
    """Return a value as configs spell it: JSON, and text without quotes."""
    if isinstance(value, Unknown):
        return "unknown"
    return value if isinstance(value, str) else json.dumps(as_json(value), sort_keys=True)
