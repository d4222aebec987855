"""The shipped update script in a real process, against an engine whose every token is known."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells.launch import Outcome, launch
from rlaudit.engines.inside.engine import ENGINE

FAKES = Path(__file__).with_name("fake_vllm")
REQUESTS = [{"prompt": prompt, "sample": 0, "seed": prompt} for prompt in range(3)]
Row = dict[str, Any]


def play(folder: Path, steps: list[dict[str, Any]], ailment: str = "", **job: Any) -> tuple[Outcome, list[Row]]:
    outcome = outcome_of(folder, steps, ailment, **job)
    assert outcome.status == "ok", outcome.failure
    return outcome, [json.loads(line) for line in (folder / "cell" / "samples.jsonl").read_text().splitlines()]


def outcome_of(folder: Path, steps: list[dict[str, Any]], ailment: str = "", **job: Any) -> Outcome:
    for version in range(3):
        (folder / f"v{version}").mkdir()
        (folder / f"v{version}" / "weights.json").write_text(json.dumps({"version": version}))
    (folder / "torn").mkdir()
    (folder / "torn" / "weights.json").write_text('{"version')
    document = {
        "script": str(ENGINE.update),
        "model": str(folder / "v0"),
        "path": "reload_weights",
        "engine_args": {},
        "checkpoints": {**{str(v): str(folder / f"v{v}") for v in range(3)}, "3": str(folder / "torn")},
        "prompt_token_ids": [[7, 8, 9, prompt] for prompt in range(3)],
        "sampling": {"temperature": 1.0, "ignore_eos": True},
        "drain_seconds": 600.0,
        "cases": [{"name": "case", "steps": steps}],
        **job,
    }
    cell = folder / "cell"
    cell.mkdir()
    (cell / "job.json").write_text(json.dumps(document))
    variables = {"PYTHONPATH": str(FAKES), "FAKE_AILMENT": ailment}
    return launch(cell, (sys.executable,), variables, 600.0)


def flight(run: str = "flight", max_tokens: int = 9, until: int | None = 3) -> dict[str, Any]:
    return {"do": "submit", "run": run, "requests": REQUESTS, "max_tokens": max_tokens, "until": until}


def update(mode: str, version: str = "1", **more: Any) -> dict[str, Any]:
    return {"do": "update", "version": version, "mode": mode, "clear_cache": False, "while_paused": [], **more}


@pytest.mark.parametrize("mode", ["keep", "none"])
def test_every_token_of_a_flight_is_given_to_the_version_that_sampled_it(tmp_path: Path, mode: str) -> None:
    # Without a pause the tokens of the update itself are given to no version: there must be some left after them.
    length = 9 if mode == "keep" else 60
    _, rows = play(tmp_path, [flight(max_tokens=length), update(mode), {"do": "settle"}])
    for row in rows:
        assert len(row["token_ids"]) == length
        for version, logprob in zip(row["versions"], row["logprobs"], strict=True):
            assert version is None or int(version) == int(-logprob) - 1
        assert {"0", "1"} <= set(row["versions"])
    assert all(row["finished"] == "1" for row in rows)


def test_waiting_finishes_a_flight_with_the_old_weights(tmp_path: Path) -> None:
    paused = [flight("after", until=None)]
    _, rows = play(tmp_path, [flight(), update("wait", while_paused=paused), {"do": "settle"}])
    assert {tuple(set(row["versions"])) for row in rows if row["run"] == "flight"} == {("0",)}
    assert {tuple(set(row["versions"])) for row in rows if row["run"] == "after"} == {("1",)}


def test_an_abort_ends_a_flight_and_its_repeated_logprobs_are_not_taken_for_tokens(tmp_path: Path) -> None:
    _, rows = play(tmp_path, [flight(), update("abort")])
    for row in rows:
        assert row["finish_reason"] == "abort"
        assert len(row["token_ids"]) == len(row["logprobs"]) == row["surplus_logprobs"]


def test_a_request_that_never_ends_is_lost_and_not_waited_for_beyond_the_limit(tmp_path: Path) -> None:
    outcome, rows = play(tmp_path, [flight(), update("keep"), {"do": "settle"}], "lose")
    assert sorted(row["lost"] for row in rows) == [False, False, True]
    (said,) = outcome.result["steps"]
    assert (said["step"], said["status"]) == ("settle", "failed")
    assert said["message"] == "RuntimeError: requests do not advance"


def test_tokens_that_come_while_paused_belong_to_no_version(tmp_path: Path) -> None:
    _, rows = play(tmp_path, [flight(max_tokens=40), update("keep"), {"do": "settle"}], "leak")
    assert any(version is None for version in rows[0]["versions"])


def test_a_checkpoint_that_cannot_be_read_fails_the_update_and_nothing_is_resumed(tmp_path: Path) -> None:
    outcome, rows = play(tmp_path, [flight(), update("keep", "3"), {"do": "settle"}])
    assert "JSONDecodeError" in outcome.result["updates"][0]["error"]
    assert {row["error"] for row in rows} == {"given up after the update failed"}
    assert {tuple(set(row["versions"])) for row in rows} == {("0",)}
    assert [(said["step"], said["status"]) for said in outcome.result["steps"]] == [("update", "failed")]


def test_what_the_worker_holds_is_told_in_versions(tmp_path: Path) -> None:
    outcome, _ = play(tmp_path, [update("keep"), {"do": "read_back"}])
    (told,) = outcome.result["read_backs"]
    assert (told["believed"], told["logits"], told["tensors"]["w"]) == ("1", "1", "1")


def test_restoring_loads_version_0_and_empties_the_cache(tmp_path: Path) -> None:
    again = flight("again", until=None)
    _, rows = play(tmp_path, [flight(until=None), update("keep"), {"do": "restore"}, again])
    later = [row for row in rows if row["run"] == "again"]
    assert {row["cached_tokens"] for row in later} == {0}
    assert {tuple(set(row["versions"])) for row in later} == {("0",)}


def test_an_engine_that_the_job_is_not_about_fails_before_anything_is_sampled(tmp_path: Path) -> None:
    meant = {"kind": "V0", "because": "the recipe asks for V0", "way_out": "Write `engine: V1`."}
    outcome = outcome_of(tmp_path, [flight()], engine=meant)
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert outcome.failure.boundary == "engine"
    assert "vLLM loaded V1, but the recipe asks for V0. Write `engine: V1`." in outcome.failure.message
    assert not (tmp_path / "cell" / "samples.jsonl").exists()


@pytest.mark.parametrize(
    ("path", "ailment"), [("reload_weights", "before 0.16.0"), ("reload_from_iterator", "")], ids=["folder", "tensors"]
)
def test_a_reload_that_takes_no_new_weights_is_no_path_of_the_release(tmp_path: Path, path: str, ailment: str) -> None:
    outcome = outcome_of(tmp_path, [{"do": "restore"}], ailment, path=path)
    assert outcome.status == "unsupported" and outcome.failure is not None
    assert "reload_weights of this vLLM takes no weights_" in outcome.failure.message
