"""`rlaudit watch`: a run that is still going on, held against gates after every step."""

import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.fail_on import FailOn
from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.errors import UsageError
from rlaudit.progress import Progress
from rlaudit.say import say

if TYPE_CHECKING:
    from rlaudit.watch.follow import Growing
    from rlaudit.watch.gate import Watched

SECONDS_OF_A_COMMAND = 60


def watch(
    run: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A training log or its folder (FILE#RUN names one of several runs), or a folder of rollout dumps.",
        ),
    ],
    gate: Annotated[
        list[str],
        typer.Option(metavar="METRIC<LIMIT", help="What has to hold, as 'k3<0.015' or 'reward>0.2'; repeatable."),
    ],
    alpha: Annotated[
        float, typer.Option(min=1e-9, max=0.5, help="Chance of a false alarm over the whole run, all gates together.")
    ] = 0.01,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 10.0,
    on_alarm: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this for each gate that is raised, and go on watching; RLAUDIT_GATE, RLAUDIT_METRIC, "
            "RLAUDIT_STEP and RLAUDIT_VALUE say which. Without it the first alarm ends the command.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look at what is there now, and end.")] = False,
    until_step: Annotated[int | None, typer.Option(min=0, help="End when this step was seen.")] = None,
    until_silent: Annotated[
        float | None, typer.Option(min=0.1, help="End when nothing new came for so many seconds.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="Take steps from this key instead of the log's own step.")] = None,
    log_format: Annotated[
        str | None, typer.Option("--format", help="Read the log as this sink instead of recognising it.")
    ] = None,
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="What exits with 1: a raised gate (error), or nothing.")
    ] = FailOn.ERROR,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> int:
    """Follow a training run, and raise an alarm when a metric has left its gate for good."""
    # Statistics take a second to import, which no other command should wait for.
    from rlaudit.watch.document import document_of
    from rlaudit.watch.follow import Until, Watch, follow
    from rlaudit.watch.gate import parse_gate

    outputs = parse_outputs(output or [])
    gates = tuple(dict.fromkeys(parse_gate(text) for text in gate))
    command = None if on_alarm is None else _words(on_alarm)
    watching = Watch(_growing(run, log_format, step), gates, alpha)
    progress = Progress(quiet)

    def raised(found: "Watched") -> bool:
        say(f"{found.gate}: {found.key}: {found.said()}")
        if command is not None:
            _tell(command, found)
        return command is not None

    said = ""

    def waited(seconds: float) -> None:
        nonlocal said
        now = watching.waiting or f"{watching.growing.name}: step {watching.last_step}"
        if now != said:
            progress.note(now)
            said = now
        time.sleep(seconds)

    ended = follow(watching, Until(once, until_step, until_silent), every, raised, waited)
    document = document_of(watching, ended, fail_on is FailOn.ERROR)
    write_outputs(outputs, document)
    return int(document["exit_code"])


def _growing(run: str, log_format: str | None, step: str | None) -> "Growing":
    """A folder that holds dumps and no log is one of dumps."""
    from rlaudit.curves.open_run import open_run
    from rlaudit.diagnosis.comparison import CompareSettings
    from rlaudit.errors import RlauditError
    from rlaudit.tokens.open_table import open_tables
    from rlaudit.watch.growing_dumps import GrowingDumps
    from rlaudit.watch.growing_log import GrowingLog

    folder = Path(run)
    if folder.is_dir() and log_format is None:
        try:
            open_run(run, None)
        except RlauditError:
            try:
                open_tables(folder)
            except RlauditError:
                pass
            else:
                return GrowingDumps(folder, CompareSettings())
    return GrowingLog(run, log_format, step)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--on-alarm {command!r} is no command line: {error}") from error
    if not words:
        raise UsageError("--on-alarm names no command")
    return words


def _tell(command: list[str], found: "Watched") -> None:
    """Run the user's command; that it fails is said and ends nothing."""
    told = {
        "RLAUDIT_GATE": str(found.gate),
        "RLAUDIT_METRIC": found.key,
        "RLAUDIT_STEP": str(found.alarm),
        "RLAUDIT_VALUE": repr(found.values[next(reversed(found.values))]),
    }
    try:
        ended = subprocess.run(command, env={**os.environ, **told}, timeout=SECONDS_OF_A_COMMAND, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"--on-alarm could not run: {error}")
        return
    if ended.returncode:
        say(f"--on-alarm ended with {ended.returncode}")
