"""What a page of a recording that anyone may read shows of its engines beside their configuration."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Calls of an update, in their order, and how many updates of an engine were made so."""

    engine: str
    times: int
    calls: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class PublicRecording:
    """A report that is made to be shown to anyone. left_out: what was left out of it, in a sentence."""

    left_out: str
    protocols: Sequence[Protocol] = ()
