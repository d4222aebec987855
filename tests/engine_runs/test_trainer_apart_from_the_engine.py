"""A trainer that never starts vLLM, beside an engine with processes of its own: `compare` joins both.

The release returns raw logprobs, and the trainer divides by the temperature: the published mistake, across processes.
Read from a redacted copy; tests/recorder/test_redaction.py holds one against its recording.
"""

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorder_folder import variables, write_recorder
from test_recordings_hold_what_the_engine_returned import QUIET, model_in
from tiny_updates import built

from rlaudit.cli.app import run
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("apart.py")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    environment = built("0.32.0")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON", "RLAUDIT_"))}
    settings = {"trainer_functions": ("apart:token_logprobs",)}
    on = variables(write_recorder(folder / "recorder", **settings), folder / "out")
    done = subprocess.run(
        [*environment.command, str(PROGRAM), str(model_in(folder)), str(folder)],
        env={**clean, **QUIET, **environment.variables, **on},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert run(["record", "--redacted-copy", str(folder / "out"), str(folder / "copy")]) == 0
    return folder / "copy"


def test_the_trainers_rows_lie_in_a_process_that_built_no_engine(recording: Path) -> None:
    processes = open_recording(recording).processes
    scored = [process for process in processes if process.trainer]
    sampled = [process for process in processes if process.sequences]
    assert len(scored) == len(sampled) == 1 and scored != sampled
    assert not scored[0].engines and not any(process.failed for process in processes)


def test_compare_joins_them_and_names_the_mistake(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["compare", str(recording), "--output", "json"])
    report: Any = json.loads(capsys.readouterr().out)
    semantic = report["layers"][0]
    assert (code, semantic["verdict"], semantic["causes"]) == (1, "mismatch", ["raw-logprobs"])
    (compared,) = report["comparisons"]
    assert compared["tokens"] == 16 * 4 * 24


def test_no_ids_that_were_sampled_or_asked_stand_in_it(recording: Path) -> None:
    rows = json.loads((recording.parent / "rows.json").read_text())
    ids = [np.asarray(tokens, "<i4").tobytes() for row in rows for tokens in row]
    lines = [json.loads(line) for file in recording.glob("*.jsonl") for line in file.read_text().splitlines()]
    held = [base64.b64decode(line["ids"]) for line in lines if "ids" in line]
    # Prompts, completions and the trainer's batches, in int32: hashes of ids have their length.
    assert len(held) >= 16 + 64 + 4
    assert not any(one in data for one in ids for data in held)
