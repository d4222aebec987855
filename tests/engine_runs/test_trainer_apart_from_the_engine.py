"""A trainer that never starts vLLM, beside an engine with processes of its own: `compare` joins both.

The release returns raw logprobs, and the trainer divides by the temperature: the published mistake, across processes.
Read from a redacted copy; tests/recorder/test_redaction.py holds one against its recording.
"""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_run import model_in, ran
from recorder_folder import write_recorder
from tiny_updates import built

from rlaudit.cli.app import run
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("apart.py")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    recorder = write_recorder(folder / "recorder", trainer_functions=("apart:token_logprobs",))
    ran(built("0.32.0"), PROGRAM, model_in(folder), folder, recorder=recorder, out=folder / "out")
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
