"""What an inspection reports: findings with their places and fixes, settings, configs, and how it ended."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.inspection.action import ActionKind
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

Group = Literal["engine", "sampling", "environment", "trainer", "framework", "model", "method", "import"]
Versions = TypedDict("Versions", {"from": str | None, "to": str | None})
"""Both sides of a migration."""


class Location(TypedDict):
    """1-based, in characters. setting: the key as it is spelt in its file. path is null for what is in no file."""

    path: str | None
    line: int | None
    column: int | None
    setting: str | None


class FixEdit(TypedDict):
    """One replacement; start and end are offsets in characters."""

    path: str
    start: int
    end: int
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    replacement: str


class Fix(TypedDict):
    """A fix. safe: it only restores what the config means today. start and end are offsets in characters."""

    description: str
    safe: bool
    edits: Sequence[FixEdit]


class Suppression(TypedDict):
    """Who suppressed a finding, where and why."""

    kind: Literal["inline", "file", "settings", "baseline"]
    reason: str
    path: str | None
    line: int | None


class Action(TypedDict):
    """What settles a finding: findings with equal actions are settled together.

    kind: "fix" (this command with --fix), "framework" (take the release that `of` names), "change" and "decide" (the
    setting `of`), "unsafe fix" (decide on what `of` says, which --fix=unsafe does), "record" (record the run).
    """

    kind: ActionKind
    of: str


class Finding(TypedDict):
    """What a rule says of one place. action: null for a note that asks for nothing."""

    rule: str
    layer: Layer | None
    severity: Severity
    message: str
    location: Location
    fix: Fix | None
    suppressed: Suppression | None
    setting: NotRequired[str]
    value: NotRequired[str]
    confirm: NotRequired[str]
    fingerprint: NotRequired[str]
    action: NotRequired[Action | None]


class Setting(TypedDict):
    """One setting as it is written and as each side of a migration has it.

    written and effective: JSON data; {"unknown": reason} if it is unknown, {"absent": reason} if that version has no
    such argument, or does not read the variable. config: index into configs; null where the row is about vLLM alone.
    open_because: the fact that settles an unknown value; rows with the same one are settled together.
    """

    name: str
    written: Any
    effective_from: Any
    effective_to: Any
    origin: str
    config: NotRequired[int | None]
    group: NotRequired[Group]
    moves: NotRequired[bool]
    note: NotRequired[str]
    location: NotRequired[Location | None]
    open_because: NotRequired[str]


class LostSetting(TypedDict):
    """What is written and never arrives."""

    name: str
    written: Any
    loss: str
    reason: str
    location: Location


class LastStep(TypedDict):
    """One of the last steps of a recorded process that did not end in order.

    what: "step", as its front end saw it, or "batch", as a worker began it. state: whether the batch had returned, or
    how many requests ended with the step.
    """

    process: int
    what: str
    number: int
    time: str
    requests: int
    tokens: int
    cached: int | None
    state: str


class TakenDefault(TypedDict):
    """A variable of a script, or an argument of it, that was taken at its default, and the sentence in `not_seen`."""

    variable: str
    sentence: str


class Config(TypedDict):
    """One rollout engine that a file sets up.

    read_as: the catalogued releases that stand for the versions. engine: V0, V1, or null if unknown. lost: what is
    written and never arrives. recorded: what was seen of its run.
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
    taken_defaults: NotRequired[Sequence[TakenDefault]]
    recorded: NotRequired[Sequence[str]]
    last_steps: NotRequired[Sequence[LastStep]]


class UnreadFile(TypedDict):
    """A file that was not read. wanted: given on the command line."""

    path: str
    reason: str
    wanted: bool


class Fixes(TypedDict):
    """What --fix or --diff did."""

    made: int
    files: Sequence[str]
    written: bool
    refused: Sequence[str]


class Inspected(TypedDict):
    """What was looked at and how it ended."""

    files_read: int
    files_of_other_kinds: int
    files_with_config: int
    configs: int
    settings: int
    rules: int
    platform: str
    machine: str
    fail_on: Severity | Literal["never"]
    counted: Mapping[str, int]
    suppressed: Mapping[str, int]
    stale_baseline_entries: int
    unread: Sequence[UnreadFile]
    bugs: Sequence[str]
    fixes: Fixes
