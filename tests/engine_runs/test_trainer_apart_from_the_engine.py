"""A trainer that never starts vLLM, beside an engine with processes of its own: `compare` joins both.

The release returns raw logprobs, and the trainer divides by the temperature: the published mistake, across processes.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recorder_folder import variables, write_recorder
from test_recordings_hold_what_the_engine_returned import QUIET, model_of
from tiny_updates import built

from rlaudit.cli.app import run
from rlaudit.recorder.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("apart.py")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, environment = tmp_path_factory.mktemp("apart"), built("0.32.0")
    model = model_of("0.32.0", folder)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON", "RLAUDIT_"))}
    on = variables(write_recorder(folder / "recorder", trainer_functions=("apart:token_logprobs",)), folder / "out")
    done = subprocess.run(
        [*environment.command, str(PROGRAM), str(model), str(folder)],
        env={**clean, **QUIET, **environment.variables, **on},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out"


def test_the_trainers_rows_lie_in_a_process_that_built_no_engine(recording: Path) -> None:
    processes = open_recording(recording).processes
    scored = [process for process in processes if process.records.get("trainer")]
    sampled = [process for process in processes if process.records.get("sequence")]
    assert len(scored) == len(sampled) == 1 and scored != sampled
    assert not scored[0].engines and not any(process.failed for process in processes)


def test_compare_joins_them_and_names_the_mistake(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["compare", str(recording), "--output", "json"])
    report: Any = json.loads(capsys.readouterr().out)
    semantic = report["layers"][0]
    assert (code, semantic["verdict"], semantic["causes"]) == (1, "mismatch", ["raw-logprobs"])
    (compared,) = report["comparisons"]
    assert compared["tokens"] == 16 * 4 * 24
