"""What a killed run left is known by number, start, boot and container; everything else is somebody else's."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells import guardian, leftovers
from rlaudit.engines.cells.guardian import Process, machine, process

NOBODY = [4194303, 1]  # the largest number that Linux gives, with the start of a process of the boot itself

# It leads a session, and hears no SIGTERM; its child does.
DEAF = """
import signal, subprocess, time
child = subprocess.Popen(["sleep", "600"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(guardian, "TERMINATION_SECONDS", 0.3)
    folder = tmp_path / "rlaudit" / "running"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that leads a session, with a child in it."""
    started = subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, start_new_session=True
    )
    yield started
    started.kill()
    subprocess.run(["pkill", "-KILL", "-s", str(started.pid)], check=False)
    started.communicate()


def known(pid: int) -> Process:
    found = process(pid)
    assert found is not None
    return found


def child_of(sleeper: "subprocess.Popen[bytes]") -> Process:
    assert sleeper.stdout is not None
    return known(int(sleeper.stdout.readline()))


def record(cache: Path, *processes: Process, **other: Any) -> Path:
    written = {
        **machine(),
        "owners": [NOBODY],
        "processes": [[one.pid, one.start, one.session] for one in processes],
        **other,
    }
    file = cache / "1-1.json"
    file.write_text(json.dumps(written))
    return file


def is_alive(one: Process) -> bool:
    now = process(one.pid)
    return now is not None and not now.ended and now.identity == one.identity


def test_a_process_without_an_owner_is_ended_and_named(
    cache: Path, sleeper: "subprocess.Popen[bytes]", capsys: pytest.CaptureFixture[str]
) -> None:
    one = known(sleeper.pid)
    file = record(cache, one)
    leftovers.end_leftovers()
    assert not is_alive(one)
    assert not file.exists()
    assert f"{one.pid} (sh)" in capsys.readouterr().err


def test_what_shares_the_session_of_a_known_process_goes_with_it(
    cache: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    child = child_of(sleeper)
    leader = known(sleeper.pid)
    record(cache, child)
    leftovers.end_leftovers()
    assert not is_alive(child)
    assert not is_alive(leader)


def test_what_outlives_the_process_that_vouched_for_it_is_ended_all_the_same(cache: Path) -> None:
    deaf = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=True)
    try:
        leader = known(deaf.pid)
        record(cache, child_of(deaf))
        leftovers.end_leftovers()
        assert not is_alive(leader)
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(deaf.pid)], check=False)
        deaf.communicate()


def test_a_number_that_was_used_again_is_another_process(cache: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    one, child = known(sleeper.pid), child_of(sleeper)
    # The session was that of the dead process, too: neither its number proves anything.
    file = record(cache, one._replace(start=one.start - 100))
    leftovers.end_leftovers()
    assert is_alive(one)
    assert is_alive(child)
    assert not file.exists()


def test_a_process_that_left_the_recorded_session_does_not_vouch_for_it(
    cache: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    child = child_of(sleeper)
    record(cache, child._replace(session=1))
    leftovers.end_leftovers()
    # It is the recorded process itself; the session it is in now is not known to be ours.
    assert not is_alive(child)


def test_a_run_whose_owner_lives_is_left_alone(cache: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    one, owner = known(sleeper.pid), known(os.getpid())
    file = record(cache, one, owners=[NOBODY, owner.identity])
    leftovers.end_leftovers()
    assert is_alive(one)
    assert file.exists()


@pytest.mark.parametrize("what", ["boot", "processes_of"])
def test_numbers_of_another_boot_or_container_mean_nothing_here(
    cache: Path, sleeper: "subprocess.Popen[bytes]", what: str
) -> None:
    one = known(sleeper.pid)
    file = record(cache, one, **{what: "another"})
    leftovers.end_leftovers()
    assert is_alive(one)
    assert file.exists()


def test_a_foreign_record_is_thrown_away_after_a_month(cache: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    one = known(sleeper.pid)
    file = record(cache, one, boot="another")
    os.utime(file, (0, 0))
    leftovers.end_leftovers()
    assert is_alive(one)
    assert not file.exists()


def test_a_process_of_another_user_is_not_ended_and_does_not_stop_the_start(
    cache: Path,
    sleeper: "subprocess.Popen[bytes]",
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = known(sleeper.pid)
    record(cache, one)

    def not_permitted(_descriptor: int, _number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("signal.pidfd_send_signal", not_permitted)
    leftovers.end_leftovers()
    assert is_alive(one)
    assert "could not be ended" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"boot": 1}', "\x00\x01", '{"owners": 3}'])
def test_a_record_that_is_broken_hides_none_of_the_others(
    cache: Path, text: str, sleeper: "subprocess.Popen[bytes]"
) -> None:
    (cache / "0-0.json").write_text(text)
    one = known(sleeper.pid)
    record(cache, one)
    leftovers.end_leftovers()
    assert not is_alive(one)


def test_a_start_without_any_record_says_nothing(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.rmdir()
    leftovers.end_leftovers()
    assert capsys.readouterr().err == ""
