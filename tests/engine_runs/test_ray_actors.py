"""Two replicas of a real engine and a trainer, each a Ray actor, under `rlaudit record`: half a minute an engine.

Ray is not installed with the engine: its packages lie in a folder, which PYTHONPATH puts before the engine's own.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from recorded_run import QUIET, installed, model_in, recorded
from tiny_updates import built

from rlaudit.cli.app import run
from rlaudit.files.parse_json import parse_json
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

RELEASE = "0.18.1"
PROGRAM = Path(__file__).with_name("ray_actors.py")
PACKAGES = ("ray==2.60.0", "msgpack==1.2.4")  # of what Ray asks for, the engine has all but the second
REPLICAS, STEPS = 2, 2
SEQUENCES = 8 * 4  # of a replica in a step


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, environment = tmp_path_factory.mktemp("ray"), built(RELEASE)
    model = model_in(folder)
    packages = installed(environment, folder / "packages", *PACKAGES)
    path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    ray = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": path}
    words = (PROGRAM, model, folder, REPLICAS, STEPS)
    options = ["--trainer-function", "ray_actors:token_logprobs"]
    done = recorded(environment, folder, "out", *words, options=options, **QUIET, **ray)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "not reached" not in done.stderr
    return folder / "out"


def test_every_actor_and_engine_core_is_recorded_and_keeps_to_its_own_updates(recording: Path) -> None:
    found = open_recording(recording)
    kinds = [(bool(one.engines), bool(one.workers), bool(one.trainer), bool(one.failed)) for one in found.processes]
    assert sorted(kinds) == sorted(
        [(True, False, False, False)] * REPLICAS
        + [(False, True, False, False)] * REPLICAS
        + [(False, False, True, False)]
    )
    assert sorted(len(one.updates) for one in found.served) == [STEPS - 1, STEPS]


def test_inspect_says_that_the_last_update_reached_one_replica(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["inspect", str(recording), "--output", "json"])
    report: Any = parse_json(capsys.readouterr().out)
    (config,) = report["configs"]
    (said,) = [one for one in config["recorded"] if "different numbers of weight updates" in one]
    assert f": {STEPS} in process" in said and f"; {STEPS - 1} in process" in said
    assert "prefix-cache-across-updates" in [finding["rule"] for finding in report["findings"]]


def test_compare_joins_the_trainers_rows_with_both_replicas(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["compare", str(recording), "--output", "json"])
    report: Any = parse_json(capsys.readouterr().out)
    assert report["layers"][0]["verdict"] != "mismatch"
    (compared,) = report["comparisons"]
    assert compared["sequences"] > REPLICAS * SEQUENCES
