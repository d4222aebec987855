"""The report of a bump: the pins that move, and the known defects that the two releases enter, leave or keep."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from rlaudit.inspection.bump.bump import Bump
from rlaudit.inspection.bump.migration import Migration, Move
from rlaudit.inspection.inspect import NOT_FINISHED, Inspection
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.bump import Bump as ReportedBump
from rlaudit.report.parts.bump import CrossedDefect
from rlaudit.rules.advisories import crossed
from rlaudit.rules.advisories.advisory import Advisory

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import PinMove
    from rlaudit.report.report import Report


def unmoved(bump: Bump, none_is_fine: bool) -> "tuple[Report, str]":
    """Return the report of a bump without anything to inspect, and why: no pin moves between two known releases."""
    before, after = bump.trees.before.shown, bump.trees.after.shown
    code = 0
    if not bump.pins.files:
        why = f"no file pins vLLM, neither in {before} nor in {after}"
        code = 0 if none_is_fine else NOT_FINISHED
    elif any(move.before is not None and move.after is not None for move in bump.pins.moves):
        why = f"pins of vLLM move from {before} to {after}, and not from one known release to another: "
        why += "give --from and --to to inspect"
        code = NOT_FINISHED
    else:
        why = f"no pin of vLLM moves from {before} to {after}"
    layers = [untested(layer, "no pin of vLLM moves") for layer in Layer]
    return {**new_report("inspect", code, layers=layers), "bump": reported(bump, None, 0)}, why


def reported(bump: Bump, inspection: Inspection | None, standing: int) -> ReportedBump:
    """Return the bump's part of the report.

    inspection: None if nothing moves. standing: how many findings the old release has already.
    """
    migration = bump.migration
    return ReportedBump(
        base=bump.trees.before.shown,
        head=bump.trees.after.shown,
        moves=[_move(move) for move in bump.pins.moves],
        said=migration.sentences if migration is not None else (),
        pin_files=bump.pins.files,
        advisories=crossed_defects(migration, inspection) if migration and inspection else [],
        standing=standing,
    )


def _move(move: Move) -> "PinMove":
    pin = move.after or move.before
    return {
        "path": move.path,
        "line": pin.line if pin is not None else 1,
        "kind": move.kind.name,
        "from": move.before.written if move.before is not None else None,
        "to": move.after.written if move.after is not None else None,
        "moves": move.versions is not None,
    }


Change = Literal["entered", "left", "still open"]


def crossed_defects(migration: Migration, inspection: Inspection) -> list[CrossedDefect]:
    """Return the known defects that the move enters, keeps and leaves, in this order."""
    moved = crossed(migration.before, migration.after)
    moves: tuple[tuple[Change, Mapping[str, Advisory]], ...] = (
        ("entered", moved.entered),
        ("still open", moved.still_open),
        ("left", moved.left),
    )
    return [_defect(name, advisory, move, inspection) for move, defects in moves for name, advisory in defects.items()]


def _defect(name: str, advisory: Advisory, move: Change, inspection: Inspection) -> CrossedDefect:
    undecided = [*_undecided(advisory, move, inspection)]
    return CrossedDefect(
        name=name,
        says=advisory.sentence,
        window=str(advisory.window),
        move=move,
        way_out=advisory.way_out,
        certain=sum(not clauses for clauses in undecided),
        open=sum(bool(clauses) for clauses in undecided),
        undecided=list(dict.fromkeys(clause for clauses in undecided for clause in clauses)),
    )


def _undecided(advisory: Advisory, move: Change, inspection: Inspection) -> Iterator[tuple[str, ...]]:
    """Yield, for each config that can meet a defect, the conditions that its file leaves open."""
    for config in (config for file in inspection.files for config in file.configs):
        side = config.audit.before if move == "left" else config.audit.after
        undecided = advisory.undecided(side)
        if undecided is not None:
            yield tuple(condition.says for condition, _ in undecided)
