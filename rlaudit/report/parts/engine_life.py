"""What a public page of a recording shows of an engine beside its configuration: its life over time."""

from collections.abc import Sequence

from typing_extensions import TypedDict


class LifeMark(TypedDict):
    """Something that was done to an engine, in seconds since the recording began. end is null if none was seen."""

    what: str
    begin: float
    end: float | None
    failed: bool


class LifeBin(TypedDict):
    """A part of the time. cached is null where nothing tells it."""

    begin: float
    tokens: int
    cached: float | None
    version: int


class Protocol(TypedDict):
    """Calls of an update, in their order, and how many updates were made so."""

    times: int
    calls: Sequence[str]


class EngineLife(TypedDict):
    """One front end."""

    name: str
    seconds: float
    bins: Sequence[LifeBin]
    marks: Sequence[LifeMark]
    updates: int
    protocols: Sequence[Protocol]


class PublicRecording(TypedDict):
    """A report that is made to be shown to anyone. left_out: what was left out of it, in a sentence."""

    left_out: str
    engines: Sequence[EngineLife]
