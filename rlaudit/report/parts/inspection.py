"""What an inspection reports: findings with their places and fixes, settings, configs, and how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from rlaudit.inspection.suppression import SuppressionKind
from rlaudit.layers import Layer
from rlaudit.rules.audit.finding import Action
from rlaudit.severity import FailFor, Severity

Group = Literal["engine", "sampling", "environment", "trainer", "framework", "model"]
Versions = TypedDict("Versions", {"from": str | None, "to": str | None})
"""Both sides of a migration."""


@dataclass(frozen=True, kw_only=True)
class Location:
    """1-based, in characters. setting: the key as it is spelt in its file. path is null for what is in no file."""

    path: str | None
    line: int | None
    column: int | None
    setting: str | None


@dataclass(frozen=True, kw_only=True)
class FixEdit:
    """One replacement; start and end are offsets in characters."""

    path: str
    start: int
    end: int
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    replacement: str


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A fix. safe: it only restores what the config means today. start and end are offsets in characters."""

    description: str
    safe: bool
    edits: Sequence[FixEdit]


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Who suppressed a finding, where and why."""

    kind: SuppressionKind
    reason: str
    path: str | None
    line: int | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a rule says of one place. action: null for a note that asks for nothing.

    so_today: whether the release before the move has it as well. It is missing if nothing moves. sets: what to set, as
    names of vLLM and values as JSON. confirm: a command line that shows whether it holds. look: what else does, or what
    to look at in its report.
    """

    rule: str
    layer: Layer | None
    severity: Severity
    message: str
    location: Location
    setting: str | None = None
    value: str | None = None
    confirm: str | None = None
    look: str | None = None
    fix: Fix | None
    suppressed: Suppression | None
    fingerprint: str | None = None
    action: Action | None = None
    so_today: bool | None = None
    sets: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting as it is written and as each side of a migration has it.

    written and effective: JSON data; {"unknown": reason} if it is unknown, {"absent": reason} if that version has no
    such argument, or does not read the variable. config: index into configs; null where the row is about vLLM alone.
    open_because: the fact that settles an unknown value; rows with the same one are settled together.
    """

    config: int | None
    group: Group
    name: str
    written: Any
    effective_from: Any
    effective_to: Any
    origin: str
    moves: bool
    note: str
    location: Location | None
    open_because: str | None = None


@dataclass(frozen=True, kw_only=True)
class LostSetting:
    """What is written and never arrives."""

    name: str
    written: Any
    loss: str
    reason: str
    location: Location


@dataclass(frozen=True, kw_only=True)
class TakenDefault:
    """A variable of a script, or an argument of it, that was taken at its default, and the sentence in `not_seen`."""

    variable: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Config:
    """One rollout engine that a file sets up.

    read_as: the catalogued releases that stand for the versions. engine: V0, V1, or null if unknown. lost: what is
    written and never arrives. recorded: what was seen of its run. called: by the file, if it sets up several.
    handed_over_by: the file on the command line that leads to this one.
    """

    path: str
    line: int | None
    framework: str
    title: str
    versions: Versions
    read_as: Versions
    versions_said: Sequence[str]
    engine: Versions
    offline: bool
    settings: int
    parts: Sequence[str]
    lost: Sequence[LostSetting]
    not_seen: Sequence[str]
    taken_defaults: Sequence[TakenDefault] | None = None
    recorded: Sequence[str] | None = None
    called: str | None = None
    handed_over_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadFile:
    """A file that was not read. wanted: given on the command line."""

    path: str
    reason: str
    wanted: bool


@dataclass(frozen=True, kw_only=True)
class Fixes:
    """What --fix or --diff did."""

    made: int
    files: Sequence[str]
    written: bool
    refused: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Gone:
    """How many findings of a rule the release before a move has and the one after it has not."""

    rule: str
    layer: Layer
    severity: Severity
    number: int


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """What was looked at and how it ended. layers: those that a rule looked at. gone: what the move takes away."""

    files_read: int
    files_of_other_kinds: int
    files_with_config: int
    configs: int
    settings: int
    rules: int
    platform: str
    machine: str
    fail_on: Severity | Literal["never"]
    fail_for: FailFor | None = None
    counted: Mapping[str, int]
    suppressed: Mapping[str, int]
    # Of an rlaudit before 0.4, which had baselines; always 0 since.
    stale_baseline_entries: int
    unread: Sequence[UnreadFile]
    bugs: Sequence[str]
    fixes: Fixes
    layers: Sequence[Layer] | None = None
    gone: Sequence[Gone] | None = None
