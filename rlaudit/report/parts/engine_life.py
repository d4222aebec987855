"""What a public page of a recording shows of an engine beside its configuration: its life over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.recorder.engine_life import Bin, Mark


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Calls of an update, in their order, and how many updates were made so."""

    times: int
    calls: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class EngineLife:
    """One front end."""

    name: str
    seconds: float
    bins: Sequence[Bin]
    marks: Sequence[Mark]
    updates: int
    protocols: Sequence[Protocol]


@dataclass(frozen=True, kw_only=True)
class PublicRecording:
    """A report that is made to be shown to anyone. left_out: what was left out of it, in a sentence."""

    left_out: str
    engines: Sequence[EngineLife]
