"""What the first screen says to do arrives at the engine, in frameworks that drop a written false."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run

VERL = """python3 -m verl.trainer.main_ppo \\
    actor_rollout_ref.model.path=Qwen/Qwen3-8B \\
    actor_rollout_ref.rollout.name=vllm
"""
AREAL = """experiment_name: x
actor: {path: Qwen/Qwen2.5-1.5B-Instruct}
rollout: {}
gconfig: {temperature: 1.0}
vllm:
  model: Qwen/Qwen2.5-1.5B-Instruct
"""


MOVE = ("--from", "0.11.2", "--to", "0.18.1")


def _to_set(config: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    config.write_text(text, encoding="utf-8")
    run(["inspect", str(config), *MOVE])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.endswith(" (for async-scheduling-on)"))
    return line


def test_the_first_screen_names_the_form_that_reaches_the_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.sh"
    to_set = _to_set(config, VERL, capsys)
    run(["inspect", str(config), *MOVE, "--fix", "--output", "json"])
    rules = {finding["rule"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    written = config.read_text(encoding="utf-8").splitlines()[-1].strip()
    assert written.endswith(".no_async_scheduling=true") and f"--fix writes {written} " in to_set
    assert rules.isdisjoint({"async-scheduling-on", "written-false-dropped"})


def test_where_no_form_is_known_the_first_screen_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AReaL has no field that says no to async scheduling, and drops a false."""
    assert "async_scheduling=false among vLLM's engine arguments, by hand" in _to_set(
        tmp_path / "run.yaml", AREAL, capsys
    )
