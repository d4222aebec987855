"""Which migration a change of pins is: the releases that the configs are inspected with, and what disagrees."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.bump.moves import Move, Pins
from rlaudit.pins.pin import Pin, span
from rlaudit.vllm.catalogue import known_versions

MOST_NAMED = 5


@dataclass(frozen=True)
class Migration:
    """said: what else is pinned, and how a range was taken, in sentences."""

    before: Version
    after: Version
    said: tuple[str, ...]


def migration_of(pins: Pins) -> Migration | None:
    """The move of the file that says most: what was resolved before what was asked for, one release before a range,
    then what most files say. None where no pin moves from one known release to another.
    """
    told = {move: move.versions for move in pins.moves if move.versions is not None}
    usable = {move: versions for move, versions in told.items() if min(versions) >= known_versions()[0]}
    if not usable:
        return None
    files = Counter(usable.values())
    chosen = min(usable, key=lambda move: (not move.exact, move.kind.rank, -files[usable[move]], move.path))
    before, after = usable[chosen]
    return Migration(before, after, tuple(_said(pins, chosen, told, (before, after))))


def _said(
    pins: Pins,
    chosen: Move,
    told: dict[Move, tuple[Version, Version]],
    versions: tuple[Version, Version],
) -> list[str]:
    said = []
    if not chosen.exact:
        said.append(
            f"{chosen.path} gives ranges and no release: they are taken for {versions[0]} and {versions[1]}, "
            f"the ends that move"
        )
    others = [
        f"{move.path} moves {_written(move.before)} to {_written(move.after)}"
        for move, one in told.items()
        if one != versions and not _allows(move, versions[1])
    ]
    said += _named(others, f"the pins disagree, and {chosen.path} is believed: ")
    behind = [
        f"{move.path}:{move.after.line} says {move.after.version}"
        for move in pins.stays
        if move.after is not None and move.after.version not in (None, versions[1])
    ]
    said += _named(list(dict.fromkeys(behind)), "pins that do not move with it: ")
    return said


def _written(pin: Pin | None) -> str:
    """A release as one, whatever names it; a range as it is written."""
    return "nothing" if pin is None else str(pin.version or pin.written)


def _allows(move: Move, version: Version) -> bool:
    """Whether a range has room for what the configs are inspected with."""
    asked = span(move.after) if move.after is not None else None
    return asked is not None and asked.contains(version, prereleases=True)


def _named(items: Sequence[str], before: str) -> list[str]:
    more = f"; and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return [f"{before}{'; '.join(items[:MOST_NAMED])}{more}"] if items else []
