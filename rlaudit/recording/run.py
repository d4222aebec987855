"""A command, run as if it had been typed without rlaudit: same terminal, same process group, same signals and end.

Only a parent learns how a command ends, so rlaudit stays its parent. What the terminal sends (Ctrl-C) the command gets
from the terminal; what is sent to rlaudit alone (docker stop, torchrun, kill) is passed on. The kernel says
which of the two a signal is (sigaction(2), si_code). A signal to the whole group that a program sent (`timeout`) looks
like one to rlaudit alone and arrives twice, unless the command sent it itself (`kill 0`).
rlaudit stops when the command has been stopped (Ctrl-Z), so that the shell takes the terminal back.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.proc import parent_of

_PASSED_ON = frozenset(
    {
        *(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP),
        *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT),
    }
)
_STOPPED_BY_THE_TERMINAL = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
# sigaction(2): sent by the kernel. Of the signals above the only one that does so is the terminal's driver.
_SI_KERNEL = 0x80
# Python ignores these two, and what is ignored is inherited.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# Engines live for minutes, and one look takes about a millisecond.
LOOK_SECONDS = 1.0


def run(words: Sequence[str], environment: Mapping[str, str], look: Callable[[int], None]) -> int:
    """Run a command to its end and return its exit code, 128 + N if signal N ended it.

    look: called with the command's process id at its start and about once a second.
    Raises UsageError if the command cannot be started, NotFinished on a system without sigtimedwait(2).
    """
    if not hasattr(signal, "sigtimedwait"):
        raise NotFinished(
            "a command can be recorded on Linux alone", "rlaudit record --export DIR writes what records elsewhere"
        )
    # The program that started rlaudit may have ignored it, and then the kernel keeps no exit code.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited_for = frozenset({*_PASSED_ON, signal.SIGCHLD})
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        pid = _start(words, environment, before)
        code = _code_at_the_end(pid, waited_for, look)
        # What came while the command ended was for the command.
        while signal.sigtimedwait(waited_for, 0):
            pass
        return code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_command(word: str) -> None:
    """Raise UsageError if no program has this name or path."""
    if shutil.which(word) is None:
        exists = "/" in word and Path(word).exists()
        raise UsageError(f"{word}: {'this is no program, or may not be run' if exists else 'there is no such command'}")


def _start(words: Sequence[str], environment: Mapping[str, str], mask: set[int | signal.Signals]) -> int:
    try:
        return os.posix_spawnp(words[0], list(words), environment, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON)
    except OSError as error:
        # A script whose first line names no program, or a missing one.
        raise UsageError(
            f"{words[0]} cannot be started: {error.strerror}", "does its first line name a program?"
        ) from error


def _code_at_the_end(pid: int, waited_for: frozenset[signal.Signals], look: Callable[[int], None]) -> int:
    look(pid)
    next_look = time.monotonic() + LOOK_SECONDS
    while True:
        arrived = signal.sigtimedwait(waited_for, max(0.0, next_look - time.monotonic()))
        if arrived is None:
            look(pid)
            next_look = time.monotonic() + LOOK_SECONDS
        elif arrived.si_signo != signal.SIGCHLD:
            if arrived.si_code != _SI_KERNEL and not _is_below(arrived.si_pid, pid):
                # It may end the command, which had no command line yet when it was looked at as it began.
                look(pid)
                os.kill(pid, arrived.si_signo)
            continue
        changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if changed and os.WIFSTOPPED(status):
            if os.WSTOPSIG(status) in _STOPPED_BY_THE_TERMINAL:
                os.kill(os.getpid(), signal.SIGSTOP)
        elif changed:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _is_below(pid: int, ancestor: int) -> bool:
    """Return whether a process is the ancestor or descends from it."""
    while pid not in (0, 1, ancestor):
        pid = parent_of(pid) or 0
    return pid == ancestor
