"""`rlaudit curves LOG --gate`: a log, finished or still written, held against gates."""

import time
from pathlib import Path

from rlaudit.curves.follow import FollowedLog, follow
from rlaudit.curves.open_run import open_run
from rlaudit.errors import RlauditError, UsageError
from rlaudit.progress import Progress
from rlaudit.say import say


def hold_against_gates(
    log: FollowedLog, progress: Progress, *, following: bool, every: float, silence: float | None
) -> str:
    """Look at the log once, or follow it; write what each raised gate is about and return why it ended."""
    _refuse_dumps(log)
    noted = ""

    def waited(seconds: float) -> None:
        nonlocal noted
        now = log.waiting or f"{log.name}: step {log.last_step}"
        if now != noted:
            progress.note(now)
            noted = now
        time.sleep(seconds)

    if following:
        ended = follow(log, every, silence, waited)
    else:
        log.look()
        ended = "one look was asked for"
    for found in log.watched.values():
        if found.alarm is not None:
            say(f"{found.gate}: {found.key}: {found.said()}")
    return ended


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
