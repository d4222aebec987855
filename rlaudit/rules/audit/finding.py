"""A finding: what a rule has to say about one place in a config."""

from dataclasses import dataclass
from enum import StrEnum

from rlaudit.layers import Layer
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.place import Edit, Place
from rlaudit.severity import Severity


class ActionKind(StrEnum):
    """The kinds of action in the order in which to act: from one command to a run."""

    FIX = "fix"
    FRAMEWORK = "framework"
    CHANGE = "change"
    UNSAFE_FIX = "unsafe fix"
    DECIDE = "decide"
    RECORD = "record"


@dataclass(frozen=True)
class Action:
    """One thing to do."""

    kind: ActionKind
    # The release to take, the setting to change or to decide, or what an unsafe fix does.
    of: str = ""


@dataclass(frozen=True)
class Fix:
    """Edits that resolve a finding. A finding has none without edits."""

    description: str
    edits: tuple[Edit, ...]
    # Whether they only restore what the config means today.
    safe: bool
    # What they set, as names of vLLM and values as JSON.
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Finding:
    """One sentence about one place."""

    rule: str
    # None for a finding about the audit itself, such as a suppression that suppresses nothing.
    layer: Layer | None
    severity: Severity
    message: str
    place: Place
    setting: str
    # The setting's value as text, for a fingerprint that survives moved lines.
    value: str = ""
    fix: Fix | None = None
    # A command line that shows whether it holds, and in words what to look at.
    confirm: str = ""
    look: str = ""
    # The experiment of `confirm`.
    trial: Trial | None = None
    # The action that settles it if no fix does.
    action: Action | None = None
    # Whether the release before the move has it as well. None where nothing moves.
    so_today: bool | None = None
    # What to set, as names of vLLM and values as JSON.
    sets: tuple[tuple[str, str], ...] = ()
