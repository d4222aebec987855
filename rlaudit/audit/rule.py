"""A rule: what one file under rules/ offers, and what an advisory becomes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.audit.action import without_fix
from rlaudit.audit.audit import Audit, as_json
from rlaudit.audit.finding import Action, Finding, Fix
from rlaudit.layers import Layer
from rlaudit.settings.place import Place
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


@dataclass(frozen=True)
class Rule:
    """One rule. check: yields findings for one audit; `finding` below builds them. defaults: engine arguments whose
    moved default it reports, so that changed-default does not list them. already: for a rule about what a release does
    not have, how severe it is if the release before the migration does not have it either.
    """

    name: str
    layer: Layer
    check: Callable[[Audit], Iterator[Finding]]
    defaults: tuple[str, ...] = ()
    already: Severity | None = None

    def finding(
        self, audit: Audit, severity: Severity, setting: str, message: str, fix: Fix | None = None,
        confirm: str = "", place: Place | None = None, by: Sequence[str] = (), action: Action | None = None,
    ) -> Finding:  # fmt: skip
        """Return a finding at the place where `setting` is written, else where the first of `by` that decides it is."""
        where = place or audit.place(setting, by)
        action = action or without_fix(audit, setting, where.setting)
        line = audit.config.decided.get(setting)
        message = message if line is None else f"{message} What decides: {line}."
        value = _value(audit, setting)
        return Finding(self.name, self.layer, severity, message, where, setting, value, fix, confirm, action)


def _value(audit: Audit, setting: str) -> str:
    """Return what the finding is about, as text: a baseline knows the finding again by it."""
    if audit.after.exists(setting):
        return _text(audit.after.engine(setting).value)
    for settings in (audit.config.sampling, audit.config.environment, audit.config.trainer):
        if setting in settings:
            return _text(settings[setting].value)
    return ""


def _text(value: Any) -> str:
    """As configs spell it: JSON, and text without quotes."""
    if isinstance(value, Unknown):
        return "unknown"
    return value if isinstance(value, str) else json.dumps(as_json(value), sort_keys=True)
