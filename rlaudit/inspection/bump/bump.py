"""A bump: the new tree inspected with the old pin's release and with the new one's, and what only the second finds.

Beside that stand the pins that move and the known defects that the two releases enter, leave or keep.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlaudit.configs.source import LARGEST_BYTES
from rlaudit.inspection.bump.migration import Migration, Move, Pins, migration_of, pins_of
from rlaudit.inspection.bump.trees import Trees, trees_named
from rlaudit.inspection.inspect import NOT_FINISHED, Inspection
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.bump import Bump as ReportedBump
from rlaudit.report.parts.bump import CrossedDefect
from rlaudit.rules.advisories import crossed
from rlaudit.rules.advisories.advisory import Advisory
from rlaudit.vllm.pins.files import LARGEST_BYTES as LARGEST_PINS
from rlaudit.vllm.pins.files import kind_of

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import PinMove
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class Bump:
    """The trees, pins and releases of a bump."""

    trees: Trees
    pins: Pins
    # None if no pin moves from one known release to another.
    migration: Migration | None


def find_bump(words: str, paths: Sequence[str]) -> Bump:
    """Find the trees that `--bump` names and the pins that move between them. Raises as `trees_named` does."""
    trees = trees_named(words, paths)
    most = (lambda path: kind_of(path) is not None), LARGEST_PINS
    with trees.before.laid_out(*most) as before, trees.after.laid_out(*most) as after:
        pins = pins_of(before, after)
    return Bump(trees, pins, migration_of(pins))


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


@contextmanager
def in_tree_after(trees: Trees) -> Iterator[None]:
    """Make the tree after the working directory, so that files are read and named as in that repository."""
    with trees.after.laid_out(lambda _path: True, LARGEST_BYTES) as folder, chdir(folder):
        yield


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
