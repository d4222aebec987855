"""An agent of several turns on a real engine: its recording has as many changed turns as the loop itself counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_run import QUIET, recorded

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import engine_spec, trainer_spec
from rlaudit.engines.models.model import ensure_model

pytestmark = pytest.mark.engine

LOOP = Path(__file__).with_name("agent_loop.py")
MODEL = "smollm2-135m-instruct"
CONVERSATIONS, TURNS, EVERY = 6, 6, 2


def looped(folder: Path, mode: str) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Run the loop under the recorder. Return what it counted, and the exit code and report of `compare`."""
    model = ensure_model(MODEL, trainer_spec("cpu"), report=print)
    words = [LOOP, model.path, mode, CONVERSATIONS, TURNS, EVERY, folder / "counted.json"]
    done = recorded(
        ensure(engine_spec("0.18.1", "cpu"), report=print),
        folder,
        "run",
        *words,
        options=["--trainer-function", "agent_loss:token_logprobs"],
        PYTHONPATH=str(LOOP.parent),
        **QUIET,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    report = folder / "report.json"
    code = run(["compare", str(folder / "run"), "--quiet", "--allow-partial", "--output", f"json:{report}"])
    return json.loads((folder / "counted.json").read_text()), code, json.loads(report.read_text())


def test_token_ids_that_are_passed_on_are_silent(tmp_path: Path) -> None:
    counted, code, report = looped(tmp_path, "ids")
    (table,) = report["comparisons"]
    assert (counted["changed"], table["conversations"]["changed"]) == ([], 0)
    assert table["conversations"]["turns"] == CONVERSATIONS * TURNS
    assert code == 0


def test_answers_that_are_shortened_in_the_history_are_counted_and_named(tmp_path: Path) -> None:
    counted, code, report = looped(tmp_path, "reasoning")
    (table,) = report["comparisons"]
    assert table["conversations"]["changed"] == len(counted["changed"]) > counted["later"] // 3
    assert table["conversations"]["k3_after"]["low"] > 1e4 * table["conversations"]["k3_others"]["high"]
    assert (code, report["layers"][0]["cause"]) == (1, "history-rendered-anew")
