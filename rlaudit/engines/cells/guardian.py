"""Stands between rlaudit and one cell, so that no engine process outlives either of them, whichever is killed.

Started as a plain file:  PYTHON -I guardian.py LEASE_FD USAGE_JSON COMMAND...

rlaudit holds the other end of LEASE_FD open for as long as it wants the command to run. It may be killed by any signal:
the end of the file is then all that is needed. The command runs in a session of its own; when it ends or the lease
does, everything it started is ended too (SIGTERM, 5 s, SIGKILL), even in another process group: an orphaned
EngineCore keeps the GPU's memory. Of a container, that is its client: docker and podman hand SIGTERM on to the first
process in it (which makes sure that it hears it: worker.py), srun to its tasks, and with apptainer and enroot what runs
inside is below us like any other. A client that has to be killed leaves its container to its daemon.

The kernel decides what happens when one of us is killed, not a name or a variable, which an engine overwrites:
- rlaudit, this process and the guardian that it forks are subreapers (prctl(2)): an orphan belongs to the nearest of
  the three that lives, which ends it. Two of them can be killed at once: Ray kills a worker with its children.
- When the second guardian dies as well, a pipe ends whose reading end the command holds, and the kernel sends SIGKILL
  to the command's process group (fcntl(2), F_SETSIG and F_SETOWN). Engine processes hold it as well (worker.py).
Not covered: a process in a session of its own, when all three are killed at the same moment.

The command has a temporary folder of its own, which goes with it: vLLM leaves two sockets there at each start.

USAGE_JSON gets exit code, seconds and peak memory of the whole process tree. Linux; standard library.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PR_SET_CHILD_SUBREAPER = 36
# What an engine needs to let go of its shared memory and sockets; a container is given as long to stop.
TERMINATION_SECONDS = 5.0
# SIGKILL takes effect at once, but for a process inside a driver that does not answer: then nothing can end it.
UNKILLABLE_SECONDS = 30.0
# Memory is sampled soon, so that short commands have a figure, and then every half second or at 2 % of a core: the
# kernel walks gigabytes of page tables for one sample.
FIRST_SAMPLE_SECONDS = 0.05
SAMPLE_SECONDS = 0.5
COSTS_APART = 50.0
# Where an engine process finds the lifeline, as DESCRIPTOR:INODE.
LIFELINE = "RLAUDIT_LIFELINE"


class Process(NamedTuple):
    """A process, told apart from all others: `start` is in clock ticks after the boot (proc_pid_stat(5), field 22)."""

    pid: int
    start: int
    session: int
    parent: int
    ended: bool

    @property
    def identity(self) -> tuple[int, int]:
        """Number and start: a number that is used again has another start."""
        return self.pid, self.start


def process(pid: int) -> Process | None:
    """Return what the kernel says of a process; None if there is none of that number."""
    try:
        # The command's name may hold spaces and brackets: what follows its last bracket is safe to split.
        state, parent, _group, session, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return Process(pid, int(others[15]), int(session), int(parent), state in {"Z", "X"})
    except (OSError, ValueError, IndexError):
        return None


def processes() -> list[Process]:
    """Return every process of this machine or container."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [found for pid in numbers if (found := process(pid)) is not None]


def descendants(root: int, apart_from: Collection[int] = ()) -> list[Process]:
    """Return every process below `root`, apart from these and what is below them. Below a subreaper, one whose parent
    died is still there.

    None is missed in passing: what a subreaper has not waited for stays its child, if only as a zombie.
    """
    children: dict[int, list[Process]] = {}
    for one in processes():
        if one.pid not in apart_from:
            children.setdefault(one.parent, []).append(one)
    found: list[Process] = []
    frontier = [root]
    while frontier:
        below = [child for parent in frontier for child in children.get(parent, [])]
        found += below
        frontier = [child.pid for child in below]
    return found


def resident_mib(of: Sequence[Process]) -> float:
    """Return the memory of the processes together in MiB, pages they share counted once (PSS)."""
    kib = 0
    for one in of:
        try:
            for line in Path(f"/proc/{one.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        except (OSError, ValueError):
            continue
    return kib / 1024


def adopt_orphans(adopt: bool = True) -> None:
    """Make this process the one that orphans below it come to, or no longer."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopt))


def end_all(found: Callable[[], list[Process]]) -> None:
    """Send SIGTERM to all that is found, wait five seconds, then send SIGKILL until nothing is left.

    What cannot be ended is given up: another user's (sudo), or one that the kernel holds, as a GPU that hangs does.
    """
    deadline = time.monotonic() + TERMINATION_SECONDS
    given_up = deadline + UNKILLABLE_SECONDS
    sent = signal.SIGTERM
    not_ours: set[tuple[int, int]] = set()
    while left := found():
        for one in left:
            if not send(one, sent):
                not_ours.add(one.identity)
        wait_until = min(deadline, time.monotonic() + 1.0) if sent == signal.SIGTERM else time.monotonic() + 0.2
        while time.monotonic() < wait_until and (left := found()):
            reap(left)
            time.sleep(0.05)
        reap(left)
        if sent == signal.SIGKILL and ({one.identity for one in left} <= not_ours or time.monotonic() > given_up):
            return
        if time.monotonic() >= deadline:
            sent = signal.SIGKILL


def send(to: Process, number: signal.Signals) -> bool:
    """Send a signal to this very process, and to none that has got its number since. Return whether we may."""
    try:
        descriptor = os.pidfd_open(to.pid)
    except OSError:
        return True
    try:
        now = process(to.pid)
        if now is not None and now.identity == to.identity:
            signal.pidfd_send_signal(descriptor, number)
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    finally:
        os.close(descriptor)
    return True


def reap(ended: Sequence[Process]) -> None:
    """Collect those of them that have ended and are ours to collect."""
    for one in ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(one.pid, os.WNOHANG)


def below_us() -> list[Process]:
    """Return everything below this process."""
    return descendants(os.getpid())


LEFT_TO_THE_LEASE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def prepare_command(lifeline: int) -> None:
    """Let the command, before it starts, listen to signals again, and its process group die with the lifeline.

    The kernel keeps this with the open file, for as long as any process holds it.
    """
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def replace(path: str, document: dict[str, Any]) -> None:
    """Write a file that is whole at every moment."""
    Path(path + ".part").write_text(json.dumps(document))
    os.replace(path + ".part", path)  # noqa: PTH105 - one syscall, said plainly


def main(lease: int, usage_path: str, command: list[str]) -> int:
    """Run the command under the lease, with a second guardian above the first."""
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_IGN)
    lifeline, _held = os.pipe()  # only the two guardians hold the other end
    scratch = tempfile.mkdtemp(prefix="rlaudit-")
    upper = os.pidfd_open(os.getpid())
    adopt_orphans()
    lower_pid = os.fork()
    if lower_pid == 0:
        adopt_orphans()  # a fork is none until it says so
        return guard(lease, upper, lifeline, usage_path, command, scratch)
    os.close(lifeline)
    os.waitpid(lower_pid, 0)
    end_all(below_us)
    shutil.rmtree(scratch, ignore_errors=True)
    return 0


def guard(lease: int, upper: int, lifeline: int, usage_path: str, command: list[str], scratch: str) -> int:
    """Start the command, and end it with the lease or with the guardian above. scratch: its temporary folder."""
    started = time.monotonic()
    try:
        running = subprocess.Popen(
            command,
            start_new_session=True,
            pass_fds=(lifeline,),
            env={**os.environ, "TMPDIR": scratch, LIFELINE: f"{lifeline}:{os.fstat(lifeline).st_ino}"},
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: prepare_command(lifeline),  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1
    os.close(lifeline)
    exit_descriptor = os.pidfd_open(running.pid)
    peak, ended_by, pause = 0.0, "itself", FIRST_SAMPLE_SECONDS
    while True:
        readable, _, _ = select.select([lease, upper, exit_descriptor], [], [], pause)
        if exit_descriptor in readable:
            running.wait()
            break
        if upper in readable or (lease in readable and not os.read(lease, 1)):
            ended_by = "lease"
            break
        began = time.monotonic()
        peak = max(peak, resident_mib(below_us()))
        pause = max(SAMPLE_SECONDS, COSTS_APART * (time.monotonic() - began))
    end_all(below_us)
    shutil.rmtree(scratch, ignore_errors=True)
    exit_code = running.returncode if ended_by == "itself" else -signal.SIGTERM
    usage = {
        "exit_code": exit_code,
        "ended_by": ended_by,
        "seconds": time.monotonic() - started,
        "peak_memory_mib": peak,
    }
    replace(usage_path, usage)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
