"""Stands between rlaudit and one cell, so that no engine process outlives either, whichever is killed.

Started as a plain file:  PYTHON -I guardian.py LEASE_FD USAGE_JSON COMMAND...

rlaudit holds the other end of LEASE_FD open for as long as the command is to run. If rlaudit is killed, by any signal,
the kernel closes it. The command runs in its own session. When the command or the lease ends, everything that it
started is ended too (SIGTERM, 5 s, SIGKILL), even in another process group: an orphaned EngineCore keeps the GPU's
memory. Of a container, only the client is below us: docker and podman pass SIGTERM on to the container's first process
(worker.py makes sure that it is handled), srun to its tasks. With apptainer and enroot all processes are below us. A
client that has to be killed leaves its container to its daemon.

What happens after a kill is left to the kernel, and not to a name or a variable, which an engine may overwrite:
- rlaudit, this process and the guardian that it forks are subreapers (prctl(2)): an orphan goes to the nearest of the
  three that lives, which ends it. Two of them may be killed at once: Ray kills a worker with its children.
- When the second guardian dies as well, a pipe ends whose reading end the command holds, and the kernel sends SIGKILL
  to the command's process group (fcntl(2), F_SETSIG and F_SETOWN). Engine processes hold it as well (worker.py).
Not covered: a process in its own session, when all three are killed at the same moment.

The command has its own temporary folder, which is removed after it: vLLM leaves two sockets there at each start. What
is left because a guardian was killed, the next command's guardian removes.

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
# Enough for an engine to release its shared memory and sockets; a container gets as long to stop.
TERMINATION_SECONDS = 5.0
# SIGKILL takes effect at once, unless the process is inside a driver that hangs: then nothing can end it.
UNKILLABLE_SECONDS = 30.0
# The first memory sample is early, so that short commands have a figure. Later ones are half a second apart, or more so
# that they take 2 % of a core: the kernel walks gigabytes of page tables for one sample.
FIRST_SAMPLE_SECONDS = 0.05
SAMPLE_SECONDS = 0.5
COSTS_APART = 50.0
# Locked by the guardians, in the command's temporary folder. A younger one may not be locked yet.
HELD = ".held-by-rlaudit"
UNLOCKED_SECONDS = 60.0
# The variable that names the lifeline to engine processes, as DESCRIPTOR:INODE.
LIFELINE = "RLAUDIT_LIFELINE"


class Process(NamedTuple):
    """A process."""

    pid: int
    # Clock ticks since the boot (proc_pid_stat(5), field 22).
    start: int
    session: int
    parent: int
    ended: bool

    @property
    def identity(self) -> tuple[int, int]:
        """Number and start: a process that reuses the number has another start."""
        return self.pid, self.start


def process(pid: int) -> Process | None:
    """Return the process of this number from /proc; None if there is none."""
    try:
        # The command's name may hold spaces and brackets, the fields after its last bracket do not.
        state, parent, _group, session, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return Process(pid, int(fields[15]), int(session), int(parent), state in {"Z", "X"})
    except (OSError, ValueError, IndexError):
        return None


def processes() -> list[Process]:
    """Return every process of this machine or container."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [running for pid in numbers if (running := process(pid)) is not None]


def descendants(root: int, apart_from: Collection[int] = ()) -> list[Process]:
    """Return every process below `root`, except those `apart_from` and the ones below them.

    Below a subreaper that includes orphans. None is missed: a process that ended stays the subreaper's child, as a
    zombie, until the subreaper has waited for it.
    """
    children: dict[int, list[Process]] = {}
    for child in processes():
        if child.pid not in apart_from:
            children.setdefault(child.parent, []).append(child)
    below: list[Process] = []
    frontier = [root]
    while frontier:
        generation = [child for parent in frontier for child in children.get(parent, [])]
        below += generation
        frontier = [child.pid for child in generation]
    return below


def resident_mib(below: Sequence[Process]) -> float:
    """Return the memory of the processes in MiB, with the pages that they share counted once (PSS)."""
    kib = 0
    for child in below:
        try:
            for line in Path(f"/proc/{child.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        except (OSError, ValueError):
            continue
    return kib / 1024


def adopt_orphans(adopt: bool = True) -> None:
    """Make this process a subreaper, which gets the orphans below it; or no longer, if not `adopt`."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopt))


def end_all(find: Callable[[], list[Process]]) -> None:
    """Send SIGTERM to all processes that `find` returns, wait five seconds, then send SIGKILL until none is left.

    Gives up on a process of another user (sudo), and on one that hangs in the kernel, as in a GPU's driver.
    """
    deadline = time.monotonic() + TERMINATION_SECONDS
    given_up = deadline + UNKILLABLE_SECONDS
    number = signal.SIGTERM
    not_ours: set[tuple[int, int]] = set()
    while alive := find():
        not_ours |= {running.identity for running in alive if not send(running, number)}
        wait_until = min(deadline, time.monotonic() + 1.0) if number == signal.SIGTERM else time.monotonic() + 0.2
        while time.monotonic() < wait_until and (alive := find()):
            reap(alive)
            time.sleep(0.05)
        reap(alive)
        none_is_ours = {running.identity for running in alive} <= not_ours
        if number == signal.SIGKILL and (none_is_ours or time.monotonic() > given_up):
            return
        if time.monotonic() >= deadline:
            number = signal.SIGKILL


def send(to: Process, number: signal.Signals) -> bool:
    """Send a signal to this process, never to one that has reused its number. Return whether we are allowed to."""
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
    """Wait for those processes that are our children and have ended."""
    for child in ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)


def below_us() -> list[Process]:
    """Return everything below this process."""
    return descendants(os.getpid())


LEFT_TO_THE_LEASE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def prepare_command(lifeline: int) -> None:
    """Before the command starts, undo the ignored signals, and tie its process group to the lifeline.

    The kernel keeps the tie with the open file, for as long as any process holds it.
    """
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def replace(path: str, document: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    Path(path + ".part").write_text(json.dumps(document))
    os.replace(path + ".part", path)  # noqa: PTH105 - the atomic syscall


def make_scratch() -> str:
    """Make the command's temporary folder, and remove those that have lost their guardians.

    The guardians hold a file in it locked for as long as either lives.
    """
    for held in Path(tempfile.gettempdir()).glob(f"rlaudit-*/{HELD}"):
        with contextlib.suppress(OSError), held.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > UNLOCKED_SECONDS:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(held.parent, ignore_errors=True)
    scratch = tempfile.mkdtemp(prefix="rlaudit-")
    fcntl.flock(os.open(Path(scratch, HELD), os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    return scratch


def main(lease: int, usage_path: str, command: list[str]) -> int:
    """Run the command under the lease, with a second guardian above the first."""
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_IGN)
    lifeline, _held = os.pipe()  # only the two guardians hold the other end
    scratch = make_scratch()
    upper = os.pidfd_open(os.getpid())
    adopt_orphans()
    lower_pid = os.fork()
    if lower_pid == 0:
        adopt_orphans()  # a fork does not inherit it
        return guard(lease, upper, lifeline, usage_path, command, scratch)
    os.close(lifeline)
    os.waitpid(lower_pid, 0)
    end_all(below_us)
    shutil.rmtree(scratch, ignore_errors=True)
    return 0


def guard(lease: int, upper: int, lifeline: int, usage_path: str, command: list[str], scratch: str) -> int:
    """Start the command, and end it with the lease or with the upper guardian. scratch: its temporary folder."""
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
