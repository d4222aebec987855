"""A finding: what a rule has to say about one place in a config."""

from dataclasses import dataclass
from enum import StrEnum

from rlaudit.configs.syntax.place import Edit, Place
from rlaudit.inspection.action import Action
from rlaudit.layers import Layer


class Severity(StrEnum):
    """How certain and how large. error: moves logprobs or breaks the start, for certain. warning: does so under
    conditions that this config does not rule out. note: worth knowing, no action needed.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 2 for an error."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Fix:
    """Edits that resolve a finding. safe: whether they only restore what the config means today."""

    description: str
    edits: tuple[Edit, ...]
    safe: bool


@dataclass(frozen=True)
class Finding:
    """One sentence about one place.

    layer: None for what is about the audit itself, such as a suppression that suppresses nothing. value: the setting's
    value as text, for a fingerprint that survives moved lines.
    """

    rule: str
    layer: Layer | None
    severity: Severity
    message: str
    place: Place
    setting: str
    value: str = ""
    fix: Fix | None = None
    confirm: str = ""
    # The action that settles it if no fix does.
    action: Action | None = None
