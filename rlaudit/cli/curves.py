"""`rlaudit curves`: when the training curves of two runs separate, and in which order."""

from typing import Annotated

import typer

from rlaudit.cli.fail_on import FailOn
from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.errors import NotFinished, UsageError


def curves(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="REF... CANDIDATE",
            help="Logs or folders of the reference (one or several seeds), then of the candidate; FILE#RUN names "
            "one of several runs in a file.",
        ),
    ],
    metric: Annotated[
        list[str] | None, typer.Option(help="Compare this key or canonical metric; repeatable. Default: all known.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="Take steps from this key instead of the log's own step.")] = None,
    log_format: Annotated[
        str | None, typer.Option("--format", help="Read all logs as this sink instead of recognising each.")
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, help="How many of the runs, from the last, are seeds of the candidate.")
    ] = 1,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="Chance of a false alarm anywhere in the report.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated thresholds.")] = 0,
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="What exits with 1: a separation (error), or nothing.")
    ] = FailOn.ERROR,
) -> int:
    """Find the first step at which training curves leave the noise band of their reference."""
    # Statistics take a second to import, which no other command should wait for.
    from rlaudit.curves.comparison import compare
    from rlaudit.curves.curve import run_of, step_keys
    from rlaudit.curves.document import document_of
    from rlaudit.curves.open_run import open_run

    if len(runs) < candidates + 1:
        raise UsageError(
            f"{candidates + 1} runs are needed: the reference, then the candidate", "rlaudit curves REF CANDIDATE"
        )
    for side, given in (("reference", runs[:-candidates]), ("candidate", runs[-candidates:])):
        if len(set(given)) < len(given):
            raise UsageError(f"the same log is given twice as {side}", "seeds are independent runs; give each once")
    outputs = parse_outputs(output or [])
    logs = [open_run(text, log_format) for text in runs]
    read = [run_of(log, key) for log, key in zip(logs, step_keys(logs, step), strict=True)]
    for run in read:
        if not run.curves:
            first = f": {run.problems[0]}" if run.problems else ""
            raise NotFinished(f"{run.name} has no metric with a step{first}", "--step names the key that holds it")
    document = document_of(
        compare(read[:-candidates], read[-candidates:], metric or [], alpha, seed), fail_on is FailOn.ERROR
    )
    write_outputs(outputs, document)
    return int(document["exit_code"])
