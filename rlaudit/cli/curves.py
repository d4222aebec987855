"""`rlaudit curves`: when the training curves of two runs separate, or whether one run keeps within its gates."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.names import exports, one_of
from rlaudit.cli.options import FailOn, Outputs
from rlaudit.cli.output import Output, parse_outputs, write_file, write_outputs
from rlaudit.errors import RlauditError, UsageError
from rlaudit.files.standard_output import to_stdout
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.text.say import say

if TYPE_CHECKING:
    from rlaudit.curves.curve import Run

# Chances of a false alarm: in one comparison, and over a run whose gates may stop it.
ALPHA, ALPHA_OF_GATES = 0.05, 0.01


def curves(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REF... CANDIDATE",
            help="Logs or folders of the reference (one or several seeds), then of the candidate; with a gate one log. "
            "FILE#RUN names one of several runs in a file.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Compare this key or canonical metric; repeatable. Default: all known."),
    ] = None,
    step: Annotated[
        str | None, typer.Option(metavar="KEY", help="Take steps from this key instead of the log's own step.")
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option("--format", metavar="SINK", help="Read all logs as this sink instead of recognising each."),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The last so many of the runs are seeds of the candidate.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=1e-6,
            max=0.5,
            metavar="P",
            help=f"Chance of a false alarm anywhere in the report ({ALPHA}), or of any gate over the whole run "
            f"({ALPHA_OF_GATES}).",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of the simulated thresholds.")] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC<LIMIT",
            help="Judge one log by what has to hold, as 'k3<0.015' or 'reward>0.2', instead of comparing; repeatable.",
        ),
    ] = None,
    gates_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="Judge one log by limits learned from runs of today's stack: a log, or a folder of runs; repeatable.",
        ),
    ] = None,
    gate_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write learned limits here with --gates-from; without it read them."),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FRAMEWORK",
            help="Print the limits in the form of this framework's own gates: skyrl, nemo-rl or prime-rl.",
            autocompletion=one_of(exports),
        ),
    ] = None,
    output: Outputs = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="error: exit with 1 at a separation or outside a gate; never: do not.")
    ] = FailOn.ERROR,
) -> int:
    """Find the first step at which training curves separate.

    With --gate: check one log, finished or growing, against limits.
    You may check after every step: false alarms do not become more frequent.
    With --gates-from: learn the limits from runs of today's stack.
    """
    runs = runs or []
    if gates_from or gate_file or export:
        of_others = {"--gate": gate, "--candidates": candidates, "--seed": seed}
        _refuse(of_others, "has no meaning beside learned limits")
        return _judge_by_learned(
            runs, gates_from or [], gate_file, metric or [], step, log_format, alpha, export, output, fail_on
        )
    of_a_comparison = {"--metric": metric, "--candidates": candidates, "--seed": seed}
    if not gate:
        outputs = parse_outputs(output)
        return _compare_runs(
            runs, metric or [], step, log_format, candidates or 1, alpha or ALPHA, seed or 0, outputs, fail_on
        )
    _refuse(of_a_comparison, "is of a comparison of runs, which has no gates")
    if len(runs) != 1:
        raise UsageError("--gate takes one log", "rlaudit curves LOG --gate 'k3<0.015'")
    from rlaudit.curves.gate import parse_gate
    from rlaudit.curves.gated_log import hold
    from rlaudit.report.of_gates import document_of

    outputs = parse_outputs(output)
    gates = tuple(dict.fromkeys(parse_gate(text) for text in gate))
    _refuse_dumps(runs[0], log_format)
    log = hold(runs[0], log_format, step, gates, alpha or ALPHA_OF_GATES)
    for held in log.held:
        if held.alarm_step is not None:
            say(f"{held.gate}: {held.metric}: {held.because}")
    return write_outputs(outputs, document_of(log, fail_on is FailOn.ERROR))


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Raise UsageError for the first of the options that has a value."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {why}")


def _compare_runs(
    runs: list[str],
    metrics: list[str],
    step: str | None,
    log_format: str | None,
    candidates: int,
    alpha: float,
    seed: int,
    outputs: list[Output],
    fail_on: FailOn,
) -> int:
    """Compare the last runs with the others, write the report and return its exit code."""
    # Statistics take a second to import, which no other command should wait for.
    from rlaudit.curves.comparison import compare
    from rlaudit.curves.open_run import runs_in
    from rlaudit.report.of_curves import document_of

    if not runs:
        raise UsageError("no log is named", "rlaudit curves REF CANDIDATE")
    if len(runs) < candidates + 1:
        of_one = runs_in(runs[0], log_format) if len(runs) == 1 else []
        named = " ".join(f"{runs[0]}#{run}" for run in of_one[:2])
        raise UsageError(
            f"{runs[0]} holds the runs {', '.join(of_one)}: name the reference, then the candidate"
            if len(of_one) > 1
            else f"{candidates + 1} runs are needed: the reference, then the candidate",
            f"rlaudit curves {named if len(of_one) > 1 else 'REF CANDIDATE'}",
        )
    for side, seeds in (("reference", runs[:-candidates]), ("candidate", runs[-candidates:])):
        if len(set(seeds)) < len(seeds):
            raise UsageError(f"the same log is given twice as {side}", "seeds are independent runs; give each once")
    curves_of_runs = _curves_of(runs, log_format, step)
    comparison = compare(curves_of_runs[:-candidates], curves_of_runs[-candidates:], metrics, alpha, seed)
    return write_outputs(outputs, document_of(comparison, fail_on is FailOn.ERROR))


def _judge_by_learned(
    logs: list[str],
    gates_from: list[str],
    gate_file: Path | None,
    metrics: list[str],
    step: str | None,
    log_format: str | None,
    alpha: float | None,
    framework: str | None,
    output: list[str] | None,
    fail_on: FailOn,
) -> int:
    """Learn gates or read them, hold the log against them if one is named, and return the report's exit code."""
    from rlaudit.curves.gate_file import read_gates, written
    from rlaudit.curves.learned_gates import learn
    from rlaudit.curves.open_run import runs_below
    from rlaudit.report.of_learned_gates import document_of
    from rlaudit.report.rendering.export import export_named

    if len(logs) > 1:
        raise UsageError("learned limits judge one log", "rlaudit curves NEW --gates-from RUN --gates-from RUN")
    if framework is not None and framework not in exports():
        raise UsageError(f"no export is called {framework!r}", did_you_mean(framework, exports(), "see: curves --help"))
    write_as = None if framework is None else export_named(framework)
    outputs = parse_outputs(output) if output or write_as is None else []
    if write_as is not None and any(to.path is None for to in outputs):
        raise UsageError("--export goes to stdout: give the report a path", "--output json:report.json")
    if gates_from:
        names = [run for text in gates_from for run in runs_below(text, log_format)]
        runs = list(dict.fromkeys(names))
        if len(runs) < len(names):
            raise UsageError("the same run is given twice", "runs are independent; give each once")
        gates = learn(_curves_of(runs, log_format, step), metrics, alpha or ALPHA)
    elif gate_file is not None:
        _refuse({"--metric": metrics or None, "--alpha": alpha}, "is of learning: the file has its limits")
        gates = read_gates(gate_file)
    else:
        raise UsageError("--export needs limits", f"rlaudit curves --gates-from RUNS --export {framework}")
    if not logs and not gates_from and write_as is None:
        raise UsageError("no log is named", f"rlaudit curves NEW --gate-file {gate_file}")
    new = _curves_of(logs, log_format, step)[0] if logs else None
    if gates_from and gate_file is not None:
        write_file(gate_file, written(gates))
        say(f"limits written: {gate_file}")
    document = document_of(gates, new, fail_on is FailOn.ERROR)
    if write_as is not None:
        to_stdout(write_as.write(gates, new))
    return write_outputs(outputs, document)


def _curves_of(names: list[str], log_format: str | None, step: str | None) -> "list[Run]":
    """Return the curves of every log."""
    from rlaudit.curves.curve import run_of, step_keys
    from rlaudit.curves.open_run import open_run

    logs = [open_run(name, log_format) for name in names]
    runs = [run_of(log, key) for log, key in zip(logs, step_keys(logs, step), strict=True)]
    for run in runs:
        run.require_curves()
    return runs


def _refuse_dumps(name: str, sink: str | None) -> None:
    """Raise UsageError for a folder of rollout dumps without a log."""
    from rlaudit.curves.open_run import open_run
    from rlaudit.tokens.open_table import open_tables

    folder = Path(name)
    if sink is not None or not folder.is_dir():
        return
    try:
        open_run(name, None)
    except RlauditError:
        try:
            open_tables(folder)
        except RlauditError:
            return
        raise UsageError(
            f"{folder} holds rollout dumps and no training log", f"rlaudit compare {folder} measures them"
        ) from None
