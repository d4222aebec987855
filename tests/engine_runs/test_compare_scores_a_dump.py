"""`rlaudit compare --score` with the real model, in the real trainer's environment."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run

pytestmark = pytest.mark.engine

MODEL = "smollm2-135m-instruct"
QUESTIONS = ["How many apples are left?", "What is two plus two?"]
COMPLETION = [504, 2988, 314, 216, 34, 30, 2]


def compared(path: Path, *more: str) -> dict[str, float]:
    """Value of each figure."""
    report = path.with_suffix(".report")
    run(["compare", str(path), "--score", MODEL, "--cpu", "--temperature", "1", "--quiet", "--output",
         f"json:{report}", *more])  # fmt: skip
    (found,) = json.loads(report.read_text())["comparisons"]
    return {name: one["value"] for name, one in found["measurements"].items()}


def test_chat_messages_are_scored_by_the_model_in_the_dtype_that_was_asked_for(tmp_path: Path) -> None:
    lines = [
        {
            "prompt_id": number,
            "sample_id": 0,
            "messages": [{"role": "user", "content": question}],
            "token_id": COMPLETION,
            "rollout_logprob": [-1.0] * len(COMPLETION),
        }
        for number, question in enumerate(QUESTIONS)
    ]
    dump = tmp_path / "messages.jsonl"
    dump.write_text("".join(json.dumps(line) + "\n" for line in lines))
    by_messages = compared(dump, "--score-dtype", "float32")
    assert by_messages["mean_abs_log_ratio"] > 0.1
    half = compared(dump, "--score-dtype", "bfloat16")
    assert half["mean_abs_log_ratio"] == pytest.approx(by_messages["mean_abs_log_ratio"], rel=0.1)
    assert half["mean_abs_log_ratio"] != by_messages["mean_abs_log_ratio"]
