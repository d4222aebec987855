"""`rlaudit inspect --bump`: what a change of the vLLM pin brings to a repository's configs."""

from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.bump.bump import Bump, find_bump, reported
from rlaudit.bump.migration import Migration
from rlaudit.cli.inspect_arguments import Asked
from rlaudit.cli.output import Output, write_outputs
from rlaudit.errors import UsageError
from rlaudit.inspection.inspect import NOT_FINISHED
from rlaudit.layers import Layer
from rlaudit.report.new_report import new_report, untested
from rlaudit.say import say

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def find(asked: Asked) -> Bump:
    """Find the two trees that `--bump` names, and the pins that move. Raises UsageError for what cannot be meant."""
    _check(asked)
    return find_bump(asked.bump or "", asked.paths)


def in_new_tree(asked: Asked, bump: Bump, migration: Migration) -> Asked:
    """Return the command line as it is to be run from the root of the new tree."""
    for sentence in migration.said:
        say(sentence)
    baseline, written = (one and one.absolute() for one in (asked.baseline, asked.write_baseline))
    before, after = str(migration.before), str(migration.after)
    paths = list(bump.trees.paths)
    return replace(asked, before=before, after=after, paths=paths, baseline=baseline, write_baseline=written)


def nothing_moves(bump: Bump, none_is_fine: bool, outputs: list[Output]) -> int:
    """Write the report of a bump that inspects nothing, and return the exit code."""
    code = _unmoved(bump, none_is_fine)
    layers = [untested(layer, "no pin of vLLM moves") for layer in Layer]
    document: Report = {**new_report("inspect", code, layers=layers), "bump": reported(bump, None, 0)}
    write_outputs(outputs, document)
    return code


def _check(asked: Asked) -> None:
    if asked.before is not None or asked.after is not None:
        raise UsageError("--bump finds --from and --to by itself: leave them out")
    if asked.defaults:
        raise UsageError("--bump is about a repository, --defaults about vLLM alone")
    if asked.fix is not None and not asked.diff:
        raise UsageError("--bump changes no file", "--diff prints the fixes as a patch")


def _unmoved(bump: Bump, none_is_fine: bool) -> int:
    """Say why nothing is inspected, and return the exit code for it."""
    sides = f"from {bump.trees.before.shown} to {bump.trees.after.shown}"
    if not bump.pins.files:
        say(f"no file pins vLLM, neither in {bump.trees.before.shown} nor in {bump.trees.after.shown}")
        return 0 if none_is_fine else NOT_FINISHED
    if any(move.before is not None and move.after is not None for move in bump.pins.moves):
        say(f"pins of vLLM move {sides}, and not from one known release to another: give --from and --to to inspect")
        return NOT_FINISHED
    say(f"no pin of vLLM moves {sides}")
    return 0
