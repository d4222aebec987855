"""`rlaudit curves LOG --gate`: a log, finished or still written, held against gates."""

import os
import shlex
import subprocess
import time
from pathlib import Path

from rlaudit.cli.fail_on import FailOn
from rlaudit.cli.output import Output, write_outputs
from rlaudit.curves.follow import FollowedLog, Until, follow
from rlaudit.curves.gate import Watched
from rlaudit.curves.gates_document import document_of
from rlaudit.curves.open_run import open_run
from rlaudit.errors import RlauditError, UsageError
from rlaudit.progress import Progress
from rlaudit.say import say

SECONDS_OF_A_COMMAND = 60


def follow_gates(
    log: FollowedLog,
    until: Until,
    every: float,
    on_alarm: str | None,
    outputs: list[Output],
    fail_on: FailOn,
    *,
    quiet: bool,
) -> int:
    """Follow the log, write the report and return its exit code. on_alarm: the user's command for each raised gate."""
    command = None if on_alarm is None else _words(on_alarm)
    _refuse_dumps(log)
    progress = Progress(quiet)

    def raised(found: Watched) -> bool:
        say(f"{found.gate}: {found.key}: {found.said()}")
        if command is not None:
            _run(command, found)
        return command is not None

    noted = ""

    def waited(seconds: float) -> None:
        nonlocal noted
        now = log.waiting or f"{log.name}: step {log.last_step}"
        if now != noted:
            progress.note(now)
            noted = now
        time.sleep(seconds)

    ended = follow(log, until, every, raised, waited)
    document = document_of(log, ended, fail_on is FailOn.ERROR)
    write_outputs(outputs, document)
    return int(document["exit_code"])


def _refuse_dumps(log: FollowedLog) -> None:
    """Raises UsageError for a folder that holds rollout dumps and no log: it would be waited for without end."""
    from rlaudit.tokens.open_table import open_tables

    folder = Path(log.name)
    if log.sink is not None or not folder.is_dir():
        return
    try:
        open_run(log.name, None)
    except RlauditError:
        try:
            open_tables(folder)
        except RlauditError:
            return
        raise UsageError(
            f"{folder} holds rollout dumps and no training log", f"rlaudit compare {folder} measures them"
        ) from None


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--on-alarm {command!r} is no command line: {error}") from error
    if not words:
        raise UsageError("--on-alarm names no command")
    return words


def _run(command: list[str], found: Watched) -> None:
    """Run the user's command; if it fails, that is written and ends nothing."""
    variables = {
        "RLAUDIT_GATE": str(found.gate),
        "RLAUDIT_METRIC": found.key,
        "RLAUDIT_STEP": str(found.alarm),
        "RLAUDIT_VALUE": repr(found.values[next(reversed(found.values))]),
    }
    try:
        ended = subprocess.run(command, env={**os.environ, **variables}, timeout=SECONDS_OF_A_COMMAND, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"--on-alarm could not run: {error}")
        return
    if ended.returncode:
        say(f"--on-alarm ended with {ended.returncode}")
