"""Stands between rlaudit and one cell, so that no engine process outlives either of them.

Started as a plain file:  PYTHON -I guardian.py LEASE_FD USAGE_JSON COMMAND...

rlaudit holds the other end of LEASE_FD open for as long as it wants the command to run. It may be killed by any signal:
the end of the file is then all that is needed. The command runs in a session of its own; when it ends or the lease
does, everything it started is ended too (SIGTERM, 10 s, SIGKILL), whatever process group it has moved to: an orphaned
EngineCore keeps the GPU's memory. Of a container that is its client: docker and podman hand SIGTERM on to the first
process in it (which makes sure that it hears it: worker.py), srun to its tasks, and with apptainer and enroot what runs
inside is below us like any other. A client that has to be killed leaves its container to its daemon.

USAGE_JSON gets exit code, seconds and peak memory of the whole process tree. Linux; standard library.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TERMINATION_SECONDS = 10.0
# Memory is sampled soon, so that short commands have a figure, and then every half second or at 2 % of a core: the
# kernel walks gigabytes of page tables for one sample.
FIRST_SAMPLE_SECONDS = 0.05
SAMPLE_SECONDS = 0.5
COSTS_APART = 50.0


def descendants(root: int) -> list[int]:
    """Every process below `root`. With the subreaper set, one whose parent died is still below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command's name may hold spaces and brackets: what follows its last bracket is safe to split.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return found


def resident_mib(processes: list[int]) -> float:
    """Memory of the processes together in MiB, pages they share counted once (PSS)."""
    kib = 0
    for pid in processes:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        except (OSError, ValueError):
            continue
    return kib / 1024


def end_all() -> None:
    """SIGTERM to everything below us, ten seconds, then SIGKILL until nothing is left."""
    deadline = time.monotonic() + TERMINATION_SECONDS
    sent = signal.SIGTERM
    while processes := descendants(os.getpid()):
        for pid in processes:
            try:
                os.kill(pid, sent)
            except ProcessLookupError:
                continue
        wait_until = min(deadline, time.monotonic() + 1.0) if sent == signal.SIGTERM else time.monotonic() + 0.2
        while time.monotonic() < wait_until and descendants(os.getpid()):
            reap()
            time.sleep(0.05)
        if time.monotonic() >= deadline:
            sent = signal.SIGKILL
        reap()


def reap() -> None:
    """Collect what has ended, ours and adopted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


LEFT_TO_THE_LEASE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def prepare_command() -> None:
    """In the command, before it starts: it listens to signals again, and if even the guardian is killed, so is it."""
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(lease: int, usage_path: str, command: list[str]) -> int:
    """Run the command under the lease; returns its exit code, negative for a signal."""
    for ignored in LEFT_TO_THE_LEASE:
        signal.signal(ignored, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            start_new_session=True,
            close_fds=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=prepare_command,  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1
    exit_descriptor = os.pidfd_open(process.pid)
    peak, ended_by, pause = 0.0, "itself", FIRST_SAMPLE_SECONDS
    while True:
        readable, _, _ = select.select([lease, exit_descriptor], [], [], pause)
        if exit_descriptor in readable:
            process.wait()
            break
        if lease in readable and not os.read(lease, 1):
            ended_by = "lease"
            end_all()
            break
        began = time.monotonic()
        peak = max(peak, resident_mib(descendants(os.getpid())))
        pause = max(SAMPLE_SECONDS, COSTS_APART * (time.monotonic() - began))
    end_all()
    exit_code = process.returncode if ended_by == "itself" else -signal.SIGTERM
    usage = {
        "exit_code": exit_code,
        "ended_by": ended_by,
        "seconds": time.monotonic() - started,
        "peak_memory_mib": peak,
    }
    Path(usage_path + ".part").write_text(json.dumps(usage))
    os.replace(usage_path + ".part", usage_path)  # noqa: PTH105 - one syscall, said plainly
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
