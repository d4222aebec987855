"""The known defects that a bump enters, leaves or keeps, and how many of the repository's configs can meet them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from rlaudit.advisories import crossed, sentence
from rlaudit.bump.migration import Migration
from rlaudit.inspection.advisory import Advisory
from rlaudit.inspection.inspect import Inspection

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import CrossedDefect

Change = Literal["entered", "left", "still open"]


def crossed_defects(migration: Migration, inspection: Inspection) -> "list[CrossedDefect]":
    """Those of the new release first."""
    found = crossed(migration.before, migration.after)
    moves: tuple[tuple[Change, Mapping[str, Advisory]], ...] = (
        ("entered", found.entered),
        ("still open", found.still_open),
        ("left", found.left),
    )
    return [_defect(name, one, move, inspection) for move, defects in moves for name, one in defects.items()]


def _defect(name: str, advisory: Advisory, move: Change, inspection: Inspection) -> "CrossedDefect":
    told = [*_undecided(advisory, move, inspection)]
    return {
        "name": name,
        "says": sentence(name),
        "window": str(advisory.window),
        "move": move,
        "way_out": advisory.way_out,
        "certain": sum(not clauses for clauses in told),
        "open": sum(bool(clauses) for clauses in told),
        "undecided": list(dict.fromkeys(clause for clauses in told for clause in clauses)),
    }


def _undecided(advisory: Advisory, move: Change, inspection: Inspection) -> Iterator[tuple[str, ...]]:
    """For each config that can meet it, what of its conditions cannot be told; under the release that has it."""
    for config in (config for file in inspection.files for config in file.configs):
        side = config.audit.before if move == "left" else config.audit.after
        undecided = advisory.undecided(side)
        if undecided is not None:
            yield tuple(condition.says for condition, _ in undecided)
