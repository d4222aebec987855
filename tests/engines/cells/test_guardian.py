"""The guardian as a process: what it starts never outlives the lease, nor itself."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from laboratories import MARK, Signpost, processes_of, wait_for_processes, wait_for_the_end

from rlaudit.engines.cells.guarded import GUARDIAN
from rlaudit.engines.cells.guardian import descendants

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

    def drop(self) -> None:
        """End the lease, as dying would."""
        os.close(self.lease)

    def ended(self) -> dict[str, Any]:
        """What the guardian wrote when all was over."""
        self.process.wait()
        written: dict[str, Any] = json.loads(self.usage.read_text())
        return written


@pytest.fixture(autouse=True)
def nobody_left_behind(tmp_path: Path) -> Any:
    yield
    left_behind = processes_of(tmp_path)
    for pid in left_behind:
        os.kill(pid, signal.SIGKILL)
    assert left_behind == []


def test_the_command_s_exit_code_and_seconds_are_written_down(tmp_path: Path) -> None:
    usage = Guarded(tmp_path, "import sys; sys.exit(7)").ended()
    assert usage["exit_code"] == 7
    assert usage["ended_by"] == "itself"
    assert usage["seconds"] > 0


def test_a_command_that_was_killed_has_a_negative_exit_code(tmp_path: Path) -> None:
    usage = Guarded(tmp_path, "import os; os.kill(os.getpid(), 9)").ended()
    assert usage["exit_code"] == -signal.SIGKILL


def test_when_the_lease_ends_so_does_the_command(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, TELL + LIVE, signpost.path)
    signpost.wait()
    guarded.drop()
    usage = guarded.ended()
    assert usage["ended_by"] == "lease"
    assert usage["exit_code"] == -signal.SIGTERM


def test_a_daemon_in_a_session_of_its_own_ends_with_the_lease(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, DAEMON + TELL + LIVE, signpost.path, LIVE)
    signpost.wait()
    # Both guardians, command, daemon.
    assert len(wait_for_processes(tmp_path, 4)) == 4
    guarded.drop()
    guarded.ended()
    assert processes_of(tmp_path) == []


def test_a_daemon_ends_when_the_command_ends_by_itself(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, DAEMON, "", LIVE)
    assert guarded.ended()["exit_code"] == 0
    assert processes_of(tmp_path) == []


def test_a_process_that_is_deaf_to_sigterm_is_killed_after_the_patience(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, DEAF + TELL + LIVE, signpost.path, patience=SHORT)
    signpost.wait()
    guarded.drop()
    guarded.ended()
    assert processes_of(tmp_path) == []


def test_sigterm_comes_first_so_that_an_engine_can_tidy_up(tmp_path: Path, signpost: Signpost) -> None:
    tidy = (
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(sys.argv[2]).touch(), sys.exit(0)))\n"
    )
    guarded = Guarded(tmp_path, tidy + TELL + LIVE, signpost.path, tmp_path / "tidied")
    signpost.wait()
    guarded.drop()
    guarded.ended()
    assert (tmp_path / "tidied").exists()


def test_when_even_the_guardian_is_killed_the_command_dies_with_it(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, TELL + LIVE, signpost.path)
    signpost.wait()
    command = [pid for pid in processes_of(tmp_path) if pid != guarded.process.pid]
    assert command, "nothing was started that could be left"
    guarded.process.kill()
    guarded.process.wait()
    wait_for_the_end(command)
    assert processes_of(tmp_path) == []
    guarded.drop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_guardian_are_left_to_the_lease(
    tmp_path: Path, signpost: Signpost, number: signal.Signals
) -> None:
    guarded = Guarded(tmp_path, TELL + LIVE, signpost.path)
    signpost.wait()
    os.kill(guarded.process.pid, number)
    assert guarded.process.poll() is None
    guarded.drop()
    assert guarded.ended()["ended_by"] == "lease"


def test_the_command_hears_the_signals_that_the_guardian_ignores(tmp_path: Path) -> None:
    heard = (
        "import signal, sys\n"
        "numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)\n"
        "sys.exit(any(signal.getsignal(number) == signal.SIG_IGN for number in numbers))\n"
    )
    assert Guarded(tmp_path, heard).ended()["exit_code"] == 0


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


LEAVES = """
import pathlib, sys, tempfile
pathlib.Path(tempfile.gettempdir(), "a-socket").touch()
pathlib.Path(sys.argv[2]).write_text(tempfile.gettempdir())
"""


def scratch_of(tmp_path: Path) -> Path:
    scratch = Path((tmp_path / "scratch").read_text())
    assert scratch.name.startswith("rlaudit-")
    return scratch


def test_what_a_command_leaves_in_its_temporary_folder_goes_with_it(tmp_path: Path) -> None:
    Guarded(tmp_path, LEAVES, "", tmp_path / "scratch").ended()
    assert not scratch_of(tmp_path).exists()


@pytest.mark.parametrize("killed", ["upper", "lower"])
def test_the_temporary_folder_goes_when_one_guardian_is_killed(tmp_path: Path, signpost: Signpost, killed: str) -> None:
    guarded = Guarded(tmp_path, LEAVES + TELL + LIVE, signpost.path, tmp_path / "scratch")
    signpost.wait()
    upper = guarded.process.pid
    (lower,) = [one.pid for one in descendants(upper) if one.parent == upper]
    others = [pid for pid in processes_of(tmp_path) if pid != guarded.process.pid]
    os.kill(upper if killed == "upper" else lower, signal.SIGKILL)
    guarded.process.wait()
    wait_for_the_end(others)
    assert not scratch_of(tmp_path).exists()
    guarded.drop()


def test_the_temporary_folder_goes_with_the_lease(tmp_path: Path, signpost: Signpost) -> None:
    guarded = Guarded(tmp_path, LEAVES + TELL + LIVE, signpost.path, tmp_path / "scratch")
    signpost.wait()
    assert (scratch_of(tmp_path) / "a-socket").exists()
    guarded.drop()
    guarded.ended()
    assert not scratch_of(tmp_path).exists()
