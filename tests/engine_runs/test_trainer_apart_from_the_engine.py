"""A trainer that never starts vLLM, beside an engine with processes of its own: `compare` joins both.

The release returns raw logprobs, and the trainer divides by the temperature: the published mistake, across processes.
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
from test_recordings_hold_what_the_engine_returned import QUIET, model_of
from tiny_updates import built

from rlaudit.cli.app import run
from rlaudit.recorder.recording import open_recording
from rlaudit.recorder.redaction_key import key_variables

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("apart.py")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("apart"), redact=False)


def recorded(folder: Path, redact: bool, **key: str) -> Path:
    environment = built("0.32.0")
    model = model_of("0.32.0", folder)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON", "RLAUDIT_"))}
    settings = {"trainer_functions": ("apart:token_logprobs",), "redact": redact}
    on = {**variables(write_recorder(folder / "recorder", **settings), folder / "out"), **key}
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


def test_redacted_it_joins_them_all_the_same(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    redacted = recorded(tmp_path, redact=True, **key_variables())
    reports = []
    for folder in (recording, redacted):
        run(["compare", str(folder), "--output", "json"])
        reports.append(json.loads(capsys.readouterr().out))
    figures = [[(one["tokens"], one["measurements"]) for one in report["comparisons"]] for report in reports]
    assert figures[0] == figures[1]
    rows = json.loads((tmp_path / "rows.json").read_text())
    ids = [np.asarray(tokens, "<i4").tobytes() for row in rows for tokens in row]
    held = [base64.b64decode(line["ids"]) for one in redacted.glob("*.jsonl") for line in lines(one) if "ids" in line]
    assert len(held) >= 16 + 64 + 4
    # The trainer's rows hold the same completions, so that a search for them is one in the right places.
    plain = [base64.b64decode(line["ids"]) for one in recording.glob("*.jsonl") for line in lines(one) if "ids" in line]
    assert all(any(one in data for data in plain) for one in ids)
    assert not any(one in data for one in ids for data in held)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
