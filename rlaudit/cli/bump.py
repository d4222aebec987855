"""`rlaudit inspect --bump`: what a change of the vLLM pin brings to a repository's configs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.bump.bump import Bump, find_bump, in_tree_after, reported
from rlaudit.cli.inspect import inspected
from rlaudit.cli.inspect_arguments import Asked
from rlaudit.cli.output import Output, parse_outputs, write_outputs
from rlaudit.errors import UsageError
from rlaudit.inspection.inspect import NOT_FINISHED
from rlaudit.layers import Layer
from rlaudit.report.new_report import new_report, untested
from rlaudit.say import say
from rlaudit.vllm.machine import Machine

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def inspect_bump(asked: Asked) -> int:
    """The exit code of `rlaudit inspect --bump`."""
    _check(asked)
    outputs = [_absolute(one) for one in parse_outputs(asked.output)] if asked.output or not asked.diff else []
    bump = find_bump(asked.bump or "", asked.paths)
    if bump.migration is None:
        code = _unmoved(bump, asked.allow_no_config)
        write_outputs(outputs, _document(bump, code))
        return code
    before, after = bump.migration.before, bump.migration.after
    for sentence in bump.migration.said:
        say(sentence)
    baseline, written = (one and one.absolute() for one in (asked.baseline, asked.write_baseline))
    here = replace(asked, before=str(before), after=str(after), paths=list(bump.trees.paths))
    with in_tree_after(bump.trees):
        return inspected(replace(here, baseline=baseline, write_baseline=written), outputs, bump)


def _check(asked: Asked) -> None:
    if asked.before is not None or asked.after is not None:
        raise UsageError("--bump finds --from and --to by itself: leave them out")
    if asked.defaults:
        raise UsageError("--bump is about a repository, --defaults about vLLM alone")
    if asked.fix is not None and not asked.diff:
        raise UsageError("--bump changes no file", "--diff prints the fixes as a patch")


def _absolute(output: Output) -> Output:
    return replace(output, path=output.path and Path(output.path).absolute())


def _unmoved(bump: Bump, none_is_fine: bool) -> int:
    """Says why nothing is inspected, and returns the exit code for it."""
    sides = f"from {bump.trees.before.shown} to {bump.trees.after.shown}"
    if not bump.pins.files:
        say(f"no file pins vLLM, neither in {bump.trees.before.shown} nor in {bump.trees.after.shown}")
        return 0 if none_is_fine else NOT_FINISHED
    if any(move.before is not None and move.after is not None for move in bump.pins.moves):
        say(f"pins of vLLM move {sides}, and not from one known release to another: give --from and --to to inspect")
        return NOT_FINISHED
    say(f"no pin of vLLM moves {sides}")
    return 0


def _document(bump: Bump, code: int) -> "Report":
    layers = [untested(layer, "no pin of vLLM moves") for layer in Layer]
    return {**new_report("inspect", code, layers=layers), "bump": reported(bump, None, 0, Machine())}
