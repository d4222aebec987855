"""Whoever is killed, alone or with others, no process of a cell is left."""

import itertools
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from killable import ROLES, assert_gone, cast, impatient_guardian, kill
from laboratories import FAKES, PATIENCE_SECONDS

from rlaudit.engines.cells.guarded import GUARDIAN
from rlaudit.engines.cells.guardian import HELD, Process, descendants, make_scratch

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

    rlaudit: "subprocess.Popen[bytes]"
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
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch_folder(tmp_path))},
    )
    everybody: list[Process] = []
    try:
        _wait_for_the_engine(process)
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


def scratch_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir(exist_ok=True)
    return folder


def _wait_for_the_engine(process: "subprocess.Popen[bytes]") -> None:
    """Read what has arrived, and not lines: a line that a buffer holds is none that `select` sees."""
    assert process.stdout is not None
    said = b""
    while b"generate" not in said:
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE_SECONDS)
        assert readable, "the engine does not start"
        arrived = os.read(process.stdout.fileno(), 65536)
        assert arrived, "the engine does not start"
        said += arrived


WATCHERS = ROLES[:3]
PAIRS = [*((one,) for one in ROLES), *itertools.combinations(ROLES, 2)]


@pytest.mark.parametrize("victims", PAIRS, ids=" and ".join)
def test_nothing_of_a_cell_is_left_when_any_two_are_killed(running: Running, victims: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in victims])
    running.rlaudit.wait()
    assert_gone(running.everybody)


@pytest.mark.parametrize("spared", WATCHERS, ids=lambda role: f"but the {role}")
def test_one_that_watches_is_enough_when_all_others_are_killed(running: Running, spared: str) -> None:
    kill([one for role, one in running.roles.items() if role != spared])
    assert_gone(running.everybody)


@pytest.mark.parametrize("victim", [role for role in ROLES if role != "upper guardian"])
def test_the_temporary_folder_goes_with_the_cell(running: Running, victim: str, tmp_path: Path) -> None:
    assert len(list(scratch_folder(tmp_path).glob("rlaudit-*"))) == 1
    kill([running.roles[victim]])
    running.rlaudit.wait()
    assert_gone(running.everybody)
    assert list(scratch_folder(tmp_path).iterdir()) == []


def test_a_folder_that_lost_its_guardians_goes_with_the_next_cell(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill([running.roles[role] for role in WATCHERS])
    assert_gone([one for one in running.everybody if one.session == running.roles["worker"].pid])
    monkeypatch.setattr(tempfile, "tempdir", str(scratch_folder(tmp_path)))
    (left,) = scratch_folder(tmp_path).iterdir()
    (scratch_folder(tmp_path) / "rlaudit-of-a-user").mkdir()
    os.utime(left / HELD, (0, 0))
    made = Path(make_scratch())
    assert {path.name for path in scratch_folder(tmp_path).iterdir()} == {made.name, "rlaudit-of-a-user"}
    os.utime(made / HELD, (0, 0))
    assert made.exists() and Path(make_scratch()).exists() and made.exists()  # it is held


@pytest.mark.parametrize("also", [(), ("worker",)], ids=["watchers", "watchers and worker"])
def test_an_engine_dies_with_the_last_of_those_that_watch_it(running: Running, also: tuple[str, ...]) -> None:
    kill([running.roles[role] for role in (*WATCHERS, *also)])
    assert_gone([one for one in running.everybody if one.session == running.roles["worker"].pid])
