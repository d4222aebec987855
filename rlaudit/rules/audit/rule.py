"""A rule: what one file under rules/ offers, and what an advisory becomes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.action import without_fix
from rlaudit.rules.audit.audit import Audit, as_text
from rlaudit.rules.audit.finding import Action, Finding, Fix
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.place import Place
from rlaudit.severity import Severity


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    layer: Layer
    # Yields the findings of one audit, built by `finding` below.
    check: Callable[[Audit], Iterator[Finding]]
    # Engine arguments whose moved default it reports, so that changed-default does not list them.
    defaults: tuple[str, ...] = ()
    # The most that a finding counts which the release before the migration has as well, for what a release lacks.
    already: Severity | None = None

    def finding(
        self, audit: Audit, severity: Severity, setting: str, message: str, fix: Fix | None = None,
        confirm: str | Trial = "", place: Place | None = None, by: Sequence[str] = (), action: Action | None = None,
        sets: Mapping[str, Any] | None = None,
    ) -> Finding:  # fmt: skip
        """Return a finding at the place of `setting`, else of the first of `by` that is written.

        A fix without edits only says what to set. sets: what to set in vLLM, if the fix does not say it. confirm: the
        experiment that shows whether it holds, or in words what else does.
        """
        where = place or audit.place(setting, by)
        action = action or without_fix(audit, setting, where.setting)
        line = audit.config.decided.get(setting)
        message = f"{message} What decides: {line}." if line else message
        value = _value(audit, setting)
        to_set = fix.sets if fix is not None else ()
        if sets is not None:
            to_set = tuple((name, as_text(wish)) for name, wish in sets.items())
        fix = fix if fix is not None and fix.edits else None
        finding = Finding(
            self.name, self.layer, severity, message, where, setting, value, fix, action=action, sets=to_set
        )
        if isinstance(confirm, str):
            return replace(finding, look=confirm)
        return replace(finding, confirm=confirm.command(audit), look=confirm.look, trial=confirm)


def _value(audit: Audit, setting: str) -> str:
    """Return a setting's value as text, by which code scanning recognises the finding in another commit."""
    if audit.after.exists(setting):
        return as_text(audit.after.engine(setting).value)
    for settings in (audit.config.sampling, audit.config.environment, audit.config.trainer):
        if setting in settings:
            return as_text(settings[setting].value)
    return ""
