"""Workers of a Ray node that ran before the command are named; workers of other jobs are not the command's."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rlaudit.recorder.earlier_ray import EarlierRay
from rlaudit.recorder.unreached import Onlooker

WAITS = "print('ready', flush=True); input()"
# What a raylet does here: it starts a worker with this title, and ends with it.
STARTS = "import subprocess, sys; print(subprocess.Popen([{title!r}, '-c', {waits!r}], executable={python!r}).wait())"
DRIVES = "import sys; log = open(sys.argv[1], 'w'); " + WAITS
JOB = "01000000"
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python that waits for its input's end, under a name; its process id."""
    with ExitStack() as stack:

        def started(name: str, *words: str, **environment: str) -> int:
            running = stack.enter_context(
                subprocess.Popen(
                    [name, *words],
                    executable=sys.executable,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            assert running.stdout is not None and running.stdin is not None
            stack.callback(running.stdin.close)
            assert running.stdout.readline() == "ready\n"
            return running.pid

        yield started


@pytest.mark.parametrize(
    ("title", "job", "variables", "session", "named"),
    [
        ("ray::Replica", JOB, (), "session", ["its PYTHONPATH lacks the recorder's folder"]),
        ("ray::Replica.generate", "ffffffff", (), "session", ["its PYTHONPATH lacks the recorder's folder"]),
        ("ray::Replica", JOB, ("PYTHONPATH",), "session", ["its environment lacks RLAUDIT_RECORD"]),
        ("ray::Replica", JOB, ("PYTHONPATH", "RLAUDIT_RECORD"), "session", []),
        ("ray::IDLE", "ffffffff", (), "session", []),
        ("ray::Replica", "02000000", (), "session", []),
        ("ray::Replica", JOB, (), "another session", []),
        ("ray::DashboardAgent", None, (), "session", []),
    ],
)
def test_a_worker_is_named_if_it_may_work_for_the_command_and_lacks_a_variable(
    title: str,
    job: str | None,
    variables: tuple[str, ...],
    session: str,
    named: list[str],
    start: Start,
    tmp_path: Path,
) -> None:
    logs = tmp_path / session / "logs"
    logs.mkdir(parents=True)
    recorder = {"PYTHONPATH": str(tmp_path / "recorder"), "RLAUDIT_RECORD": str(tmp_path)}
    given = {name: recorder[name] for name in variables} | ({} if job is None else {"RAY_JOB_ID": job})
    program = STARTS.format(title=title, waits=WAITS, python=sys.executable)
    start("raylet", "-c", program, f"--raylet_socket_name={tmp_path}/session/sockets/raylet", **given)
    command = start("python", "-c", DRIVES, str(logs / f"python-core-driver-{JOB}{'f' * 48}_17.log"), **recorder)
    onlooker = Onlooker(tmp_path / "recorder")
    for _ in range(2):
        onlooker.look(command)
    found = onlooker.unreached(())
    assert [one.words for one in found] == [("ray::Replica",)] * len(named)
    assert [why in one.why for one, why in zip(found, named, strict=True)] == [True] * len(named)


def test_a_worker_whose_number_is_smaller_than_its_raylets_is_known(start: Start, tmp_path: Path) -> None:
    (tmp_path / "session" / "logs").mkdir(parents=True)
    program = STARTS.format(title="ray::Replica", waits=WAITS, python=sys.executable)
    raylet = start(
        "raylet", "-c", program, f"--raylet_socket_name={tmp_path}/session/sockets/raylet", RAY_JOB_ID="ffffffff"
    )
    log = tmp_path / "session" / "logs" / f"python-core-driver-{JOB}{'f' * 48}_17.log"
    command = start("python", "-c", DRIVES, str(log))
    worker = int(Path(f"/proc/{raylet}/task/{raylet}/children").read_text())
    ray = EarlierRay()
    # As they are met after the numbers began again.
    ray.place({worker: raylet, raylet: 1})
    assert [pid for pid, _, _ in ray.workers([command])] == [worker]
