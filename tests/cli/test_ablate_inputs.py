"""The same prompts and conversations are rendered beside each engine, and what differs stands before the layers."""

import json
from typing import Any

import pytest
from laboratories import ONE_FACTOR, V0, V1, Laboratory, Run

from rlaudit.cli.app import run as rlaudit

HONEST = [{"role": "user", "content": "what is nine times four"}]
DATED = [{"role": "user", "content": "it is DATED today"}]


def ablated(laboratory: Laboratory, last: Any) -> Run:
    """A run with fifteen honest chats and this last one."""
    chats = laboratory.folder / "chats.jsonl"
    chats.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in [*[HONEST] * 15, last]))
    return laboratory.ablate(laboratory.recipe(ONE_FACTOR, prompts=str(chats)))


def test_what_is_rendered_alike_everywhere_is_in_json_alone(laboratory: Laboratory) -> None:
    run = ablated(laboratory, HONEST)
    inputs = run.report["inputs"]
    assert (inputs["verdict"], inputs["compared"], inputs["different"]) == ("match", 16 + 14, [])
    assert list(inputs["versions"]) == ["the trainer", f"vLLM {V0}", f"vLLM {V1}"]
    assert "Inputs" not in run.stdout


def test_a_chat_that_an_engine_renders_otherwise_is_shown_before_the_layers_and_fails(
    laboratory: Laboratory, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ablated(laboratory, DATED)
    inputs = run.report["inputs"]
    assert (run.exit_code, inputs["verdict"], inputs["moved"]) == (1, "mismatch", True)
    assert [(one["name"], one["side"], one["first"]) for one in inputs["different"]] == [
        ("prompt 16", f"vLLM {V0}", 3),
        ("prompt 16", f"vLLM {V1}", 3),
    ]
    assert "DATED" in inputs["different"][0]["trainer"]
    assert V0 in inputs["different"][0]["engine"]
    assert run.stdout.index("Other tokens go in: ") < run.stdout.index("1. semantic")
    for form, words in (
        ("concise", "Other tokens go in: "),
        ("markdown", "- inputs MISMATCH: "),
        ("sarif", "Other tokens"),
    ):
        assert rlaudit(["report", str(run.folder / "report.json"), "--output", form]) == 1
        assert words in capsys.readouterr().out
