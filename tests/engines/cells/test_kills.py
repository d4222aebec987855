"""Whoever is killed, alone or with others, no process of a cell is left."""

import itertools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from killable import ROLES, alive, assert_gone, cast, impatient_guardian, kill, seconds_until_gone
from laboratories import FAKES, PATIENCE_SECONDS

from rlaudit.engines.cells import leftovers
from rlaudit.engines.cells.guarded import GUARDIAN
from rlaudit.engines.cells.guardian import Process, descendants, process

PATIENCE = 0.5
SCRIPT = f"""
import sys
sys.path.insert(0, {str(FAKES)!r})
import engine_core


def run(job, channel):
    ask = engine_core.start()
    channel.phase("generate")
    while True:
        ask()
"""
RLAUDIT = """
import json, sys
from pathlib import Path
from rlaudit.engines.cells import guarded, guardian
from rlaudit.engines.cells.launch import launch
cell, guarded.GUARDIAN, guardian.TERMINATION_SECONDS = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
launch(cell, (sys.executable,), {}, 600.0, lambda event: print(json.dumps(event), flush=True))
"""


@dataclass(frozen=True)
class Running:
    """A cell whose engine answers questions."""

    rlaudit: "subprocess.Popen[str]"
    roles: dict[str, Process]
    everybody: list[Process]
    cache: Path


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    cell = tmp_path / "cell"
    cell.mkdir()
    (cell / "script.py").write_text(SCRIPT)
    (cell / "job.json").write_text(f'{{"script": "{cell / "script.py"}"}}')
    guardian = impatient_guardian(tmp_path, GUARDIAN, PATIENCE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    process = subprocess.Popen(
        [sys.executable, "-c", RLAUDIT, str(cell), str(guardian), str(PATIENCE)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    everybody: list[Process] = []
    try:
        while "generate" not in _line(process):
            pass
        roles = cast(process.pid)
        assert set(roles) == set(ROLES)
        everybody += [roles["rlaudit"], *descendants(process.pid)]
        # The five, multiprocessing's resource tracker, and a daemon in a session of its own.
        assert len(everybody) >= 7
        yield Running(process, roles, everybody, tmp_path / "cache")
    finally:
        kill(everybody)
        process.kill()
        process.communicate()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], PATIENCE_SECONDS)
    assert readable, "the engine does not start"
    line = process.stdout.readline()
    assert line, "the engine does not start"
    return line


PAIRS = [*((one,) for one in ROLES), *itertools.combinations(ROLES, 2)]


@pytest.mark.parametrize("victims", PAIRS, ids=" and ".join)
def test_nothing_of_a_cell_is_left_when_any_two_are_killed(running: Running, victims: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in victims])
    running.rlaudit.wait()
    assert_gone(running.everybody)


@pytest.mark.parametrize(
    "spared", [role for role in ROLES if role not in {"worker", "engine"}], ids=lambda role: f"but the {role}"
)
def test_one_that_watches_is_enough_when_all_others_are_killed(running: Running, spared: str) -> None:
    kill([one for role, one in running.roles.items() if role != spared])
    assert_gone(running.everybody)


def _wait_for_record_of(one: Process, cache: Path) -> None:
    """A guardian looks every half second."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(str(one.pid) in file.read_text() for file in (cache / "rlaudit" / "running").glob("*.json")):
        assert time.monotonic() < deadline, "the guardian does not write it down"
        time.sleep(0.05)


WATCHERS = ROLES[:3]


@pytest.mark.parametrize("also", [(), ("worker",)], ids=["watchers", "watchers and worker"])
def test_an_engine_dies_with_the_last_of_those_that_watch_it(running: Running, also: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in (*WATCHERS, *also)])
    assert_gone([one for one in running.everybody if one.session == running.roles["worker"].pid])


def test_the_next_start_ends_a_daemon_that_outlived_everybody_and_says_so(
    running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = next(one for one in running.everybody if one.session == one.pid and one not in running.roles.values())
    _wait_for_record_of(daemon, running.cache)
    kill(running.roles.values())
    assert seconds_until_gone([daemon], patience=1.0) == float("inf")
    leftovers.end_leftovers()
    assert alive(running.everybody) == []
    assert f"rlaudit: ending what a killed run left: {daemon.pid} (sleep)" in capsys.readouterr().err
    leftovers.end_leftovers()
    assert capsys.readouterr().err == ""
    assert list((running.cache / "rlaudit" / "running").iterdir()) == []


def test_a_second_rlaudit_does_not_touch_a_run_that_lives(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    leftovers.end_leftovers()
    assert {one.identity for one in alive(running.everybody)} >= {one.identity for one in running.everybody}
    assert capsys.readouterr().err == ""
    assert len(list((running.cache / "rlaudit" / "running").glob("*.json"))) == 1


def test_a_run_that_loses_rlaudit_alone_is_left_to_its_guardians(running: Running) -> None:
    os.kill(running.roles["lower guardian"].pid, signal.SIGSTOP)
    kill([running.roles["rlaudit"]])
    running.rlaudit.wait()
    leftovers.end_leftovers()
    now = process(running.roles["engine"].pid)
    assert now is not None
    assert not now.ended
    os.kill(running.roles["lower guardian"].pid, signal.SIGCONT)
    assert_gone(running.everybody)
