"""A bump, from its two trees to its part of the report."""

from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rlaudit.bump.defects import crossed_defects
from rlaudit.bump.gone import gone_names
from rlaudit.bump.migration import Migration, migration_of
from rlaudit.bump.moves import Move, Pins, pins_of
from rlaudit.bump.new_routes import new_routes
from rlaudit.bump.tree import FolderTree, GitTree
from rlaudit.bump.trees import Trees, trees_named
from rlaudit.inspection.inspect import Inspection
from rlaudit.inspection.suppression import Judged
from rlaudit.vllm.machine import Machine

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import Bump as ReportedBump
    from rlaudit.report.parts.bump import PinMove


# What ran before a bump is the tree before it: that the tree after does not go with the old release is its purpose.
OF_TODAY = "today-cannot-run"


@dataclass(frozen=True)
class Bump:
    """migration: None where no pin moves from one known release to another."""

    trees: Trees
    pins: Pins
    migration: Migration | None


def find_bump(words: str, paths: Sequence[str]) -> Bump:
    """What `--bump` names. Raises as `trees_named` does."""
    trees = trees_named(words, paths)
    pins = pins_of(trees.before, trees.after)
    return Bump(trees, pins, migration_of(pins))


@contextmanager
def in_tree_after(trees: Trees) -> Iterator[None]:
    """The tree after as working directory, so that whatever is read or said of a file is as in that repository."""
    if isinstance(trees.after, FolderTree):
        with chdir(trees.after.root):
            yield
    elif isinstance(trees.after, GitTree):
        with TemporaryDirectory(prefix="rlaudit-bump-") as folder:
            trees.after.lay_out(Path(folder))
            with chdir(folder):
                yield


def brought_by(bump: Inspection, today: Inspection) -> tuple[Judged, ...]:
    """The findings that the old release does not have on the same files."""
    standing: dict[tuple[object, ...], int] = {}
    for one in today.counted:
        standing[_identity(one)] = max(one.finding.severity.rank, standing.get(_identity(one), 0))
    return tuple(
        one
        for one in bump.judged
        if one.finding.severity.rank > standing.get(_identity(one), -1) and one.finding.rule != OF_TODAY
    )


def _identity(one: Judged) -> tuple[object, ...]:
    finding = one.finding
    return finding.rule, finding.place, finding.setting, finding.value


def reported(bump: Bump, inspection: Inspection | None, standing: int, machine: Machine) -> "ReportedBump":
    """Its part of the report. inspection: None where nothing moves. standing: how many findings the old release has
    already.
    """
    migration = bump.migration
    tree = bump.trees.after
    return {
        "base": bump.trees.before.shown,
        "head": bump.trees.after.shown,
        "moves": [_move(move) for move in bump.pins.moves],
        "said": list(migration.said) if migration is not None else [],
        "pin_files": bump.pins.files,
        "gone": gone_names(migration.before, migration.after, machine, tree) if migration else [],
        "new_routes": new_routes(migration.before, migration.after, tree) if migration else [],
        "advisories": crossed_defects(migration, inspection) if migration and inspection else [],
        "standing": standing,
    }


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
