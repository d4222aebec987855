"""The guardian as a process: what it starts never outlives the lease, nor itself. Its own end: test_kills.py."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratories import MARK, Signpost, processes_of, wait_for_processes, wait_for_the_end

from rlaudit.engines.cells.guarded import GUARDIAN

# Looks often, and has the patience that a test needs; the guardian's own is five seconds.
GUARDIAN_OF_A_TEST = """
import runpy, sys
guardian = runpy.run_path(sys.argv[1])
guardian["end_all"].__globals__.update(TERMINATION_SECONDS=float(sys.argv[2]), SAMPLE_SECONDS=0.01)
sys.exit(guardian["main"](int(sys.argv[3]), sys.argv[4], sys.argv[5:]))
"""
FOR_EVER, SHORT = 1e6, 0.3
LIVE = "import signal\nwhile True: signal.pause()\n"
TELL = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('here')\n"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
# A daemon as in the books: a session of its own and a parent that is gone.
DAEMON = """
import subprocess, sys
start = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
subprocess.run([sys.executable, "-c", start, sys.argv[2]], check=True)
"""
TIDIES_UP = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(sys.argv[2]).touch(), sys.exit(0)))
"""
HEARS = """
import signal, sys
numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
sys.exit(any(signal.getsignal(number) == signal.SIG_IGN for number in numbers))
"""
LEAVES = """
import pathlib, sys, tempfile
pathlib.Path(tempfile.gettempdir(), "a-socket").touch()
pathlib.Path(sys.argv[2]).write_text(tempfile.gettempdir())
"""


class Guarded:
    """A guardian with its command, and our end of the lease."""

    def __init__(self, folder: Path, program: str, *arguments: object, patience: float = FOR_EVER) -> None:
        reading, self.lease = os.pipe()
        self.usage = folder / "usage.json"
        command = [sys.executable, "-c", program, *map(str, arguments)]
        told = map(str, (GUARDIAN, patience, reading, self.usage))
        self.process = subprocess.Popen(
            [sys.executable, "-c", GUARDIAN_OF_A_TEST, *told, *command],
            pass_fds=(reading,),
            env={**os.environ, MARK: str(folder)},
        )
        os.close(reading)

    def ended(self, drop: bool = False) -> dict[str, Any]:
        """What the guardian wrote when all was over. drop: end the lease, as dying would."""
        if drop:
            os.close(self.lease)
        self.process.wait()
        written: dict[str, Any] = json.loads(self.usage.read_text())
        return written


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path) -> Iterator[None]:
    yield
    left_behind = processes_of(tmp_path)
    for pid in left_behind:
        os.kill(pid, signal.SIGKILL)
    assert left_behind == []


@pytest.mark.parametrize(
    ("program", "code"), [("import sys; sys.exit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9), (HEARS, 0)]
)
def test_the_command_s_exit_code_and_seconds_are_written_down(program: str, code: int, tmp_path: Path) -> None:
    usage = Guarded(tmp_path, program).ended()
    assert (usage["exit_code"], usage["ended_by"]) == (code, "itself")
    assert usage["seconds"] > 0


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_lease_ends_the_command_and_no_signal_to_the_guardian_does(
    number: signal.Signals | None, tmp_path: Path, signpost: Signpost
) -> None:
    guarded = Guarded(tmp_path, TELL + LIVE, signpost.path)
    signpost.wait()
    if number is not None:
        os.kill(guarded.process.pid, number)
        assert guarded.process.poll() is None
    usage = guarded.ended(drop=True)
    assert (usage["ended_by"], usage["exit_code"]) == ("lease", -signal.SIGTERM)


def test_a_daemon_in_a_session_of_its_own_ends_with_the_lease(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, DAEMON + TELL + LIVE, signpost.path, LIVE)
    signpost.wait()
    # Both guardians, command, daemon.
    assert len(wait_for_processes(tmp_path, 4)) == 4
    guarded.ended(drop=True)
    assert processes_of(tmp_path) == []


def test_a_daemon_ends_when_the_command_ends_by_itself(tmp_path: Path) -> None:
    assert Guarded(tmp_path, DAEMON, "", LIVE).ended()["exit_code"] == 0
    assert processes_of(tmp_path) == []


def test_sigterm_comes_first_and_what_is_deaf_to_it_is_killed_after_the_patience(
    tmp_path: Path, signpost: Signpost
) -> None:
    # With the patience of the first it would never be killed.
    for program, patience in ((TIDIES_UP, FOR_EVER), (DEAF, SHORT)):
        guarded = Guarded(tmp_path, program + TELL + LIVE, signpost.path, tmp_path / "tidied", patience=patience)
        signpost.wait()
        guarded.ended(drop=True)
        assert (tmp_path / "tidied").exists()
        assert processes_of(tmp_path) == []


def test_when_even_the_guardian_is_killed_the_command_and_its_temporary_folder_go_with_it(
    tmp_path: Path, signpost: Signpost
) -> None:
    guarded = Guarded(tmp_path, LEAVES + TELL + LIVE, signpost.path, tmp_path / "scratch")
    signpost.wait()
    scratch = Path((tmp_path / "scratch").read_text())
    assert scratch.name.startswith("rlaudit-") and (scratch / "a-socket").exists()
    others = [pid for pid in processes_of(tmp_path) if pid != guarded.process.pid]
    assert others, "nothing was started that could be left"
    guarded.process.kill()
    guarded.process.wait()
    wait_for_the_end(others)
    assert not scratch.exists()
    os.close(guarded.lease)


@pytest.mark.parametrize("program", [LEAVES, LEAVES + TELL + LIVE], ids=["its end", "the lease"])
def test_what_a_command_leaves_in_its_temporary_folder_goes_with_it(
    program: str, tmp_path: Path, signpost: Signpost
) -> None:
    guarded = Guarded(tmp_path, program, signpost.path, tmp_path / "scratch")
    if program != LEAVES:
        signpost.wait()
    guarded.ended(drop=program != LEAVES)
    assert not Path((tmp_path / "scratch").read_text()).exists()


def test_peak_memory_is_that_of_the_whole_tree_and_counts_shared_pages_once(tmp_path: Path) -> None:
    # The child shares the 96 MiB of its parent: together they are not 192.
    held = "import os, signal\nheld = bytearray(96 << 20)\nif os.fork() == 0:\n    os.setsid()\n    signal.pause()\n"
    # The guardian goes to sleep between two looks: a few more sleeps of its, and it has looked.
    looked = """
def sleeps():
    with open(f"/proc/{os.getppid()}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))
before = sleeps()
while sleeps() < before + 3:
    pass
"""
    usage = Guarded(tmp_path, held + looked).ended()
    assert 96 < usage["peak_memory_mib"] < 160
