"""What every command that judges says of the layers, and what a diagnosis read: reports, or recorded trainings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlaudit.layers import Layer, Verdict


@dataclass(frozen=True, kw_only=True)
class Source:
    """A report that a diagnosis read."""

    path: str
    command: str
    exit_code: int


Kind = Literal["release", "configuration", "environment", "sampling", "update"]
Role = Literal["old", "new", "alone"]


@dataclass(frozen=True, kw_only=True)
class RecordedTraining:
    """One recording. role: old and new of a migration, else alone. layers: what its own tokens say of each, none if
    they could not be compared. seen: what was seen of each engine's run, in sentences.
    """

    path: str
    role: Role
    vllm: str | None
    engines: int
    layers: Mapping[str, Verdict]
    seen: Sequence[str]
    missing: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What two trainings do not have in common. old, new: what ran; old_written, new_written: what was requested.

    Values are JSON data; {"unknown": reason} if they are not known, {"absent": reason} if a release has no such thing.
    layer: the one that it matters for, if it is known to matter. why: in one clause, "" otherwise.
    """

    kind: Kind
    name: str
    layer: Layer | None
    old: Any
    new: Any
    old_written: Any
    new_written: Any
    why: str


@dataclass(frozen=True, kw_only=True)
class Trainings:
    """The recordings of a diagnosis. same: the kinds in which nothing differs."""

    recordings: Sequence[RecordedTraining]
    differences: Sequence[Difference]
    same: Sequence[Kind]
