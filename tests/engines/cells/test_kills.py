"""Whoever is killed, alone or with others, no process of a cell is left."""

import itertools
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from killable import ROLES, cast, impatient_guardian, kill, seconds_until_gone
from laboratories import FAKES

from rlaudit.engines.cells.guarded import GUARDIAN
from rlaudit.engines.cells.guardian import Process, descendants

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


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    cell = tmp_path / "cell"
    cell.mkdir()
    (cell / "script.py").write_text(SCRIPT)
    (cell / "job.json").write_text(f'{{"script": "{cell / "script.py"}"}}')
    guardian = impatient_guardian(tmp_path, GUARDIAN, PATIENCE)
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
        yield Running(process, roles, everybody)
    finally:
        kill(everybody)
        process.kill()
        process.communicate()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], 60)
    assert readable, "the engine does not start"
    line = process.stdout.readline()
    assert line, "the engine does not start"
    return line


WATCHERS = ROLES[:3]
PAIRS = [*((one,) for one in ROLES), *itertools.combinations(ROLES, 2)]


@pytest.mark.parametrize("victims", PAIRS, ids=" and ".join)
def test_nothing_of_a_cell_is_left_when_any_two_are_killed(running: Running, victims: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in victims])
    running.rlaudit.wait(timeout=30)
    assert seconds_until_gone(running.everybody) < 10


@pytest.mark.parametrize("spared", WATCHERS, ids=lambda role: f"but the {role}")
def test_one_that_watches_is_enough_when_all_others_are_killed(running: Running, spared: str) -> None:
    kill([one for role, one in running.roles.items() if role != spared])
    assert seconds_until_gone(running.everybody) < 10


@pytest.mark.parametrize("also", [(), ("worker",)], ids=["watchers", "watchers and worker"])
def test_an_engine_dies_with_the_last_of_those_that_watch_it(running: Running, also: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in (*WATCHERS, *also)])
    assert seconds_until_gone([one for one in running.everybody if one.session == running.roles["worker"].pid]) < 5
