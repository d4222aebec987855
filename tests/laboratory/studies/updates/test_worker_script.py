"""The shipped update script in a real process, against an engine whose every token is known."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_engine import launched, weights

from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.inside.engine import ENGINE

REQUESTS = [{"prompt": prompt, "sample": 0, "seed": prompt} for prompt in range(3)]
Row = dict[str, Any]


def play(folder: Path, *cases: dict[str, Any], ailment: str = "", **job: Any) -> tuple[Outcome, list[Row]]:
    outcome = outcome_of(folder, *cases, ailment=ailment, **job)
    assert outcome.status == "ok", outcome.failure
    return outcome, [json.loads(line) for line in (folder / "cell" / "samples.jsonl").read_text().splitlines()]


def outcome_of(folder: Path, *cases: dict[str, Any], ailment: str = "", length: int = 9, **job: Any) -> Outcome:
    versions = {str(version): str(weights(folder / f"v{version}", version)) for version in range(2)}
    lengths = {"cold": 1, "before": 3, "flight": length, "after": 3, "cold after": 3, "warm after": 3}
    document = {
        "model": versions["0"],
        "path": "reload_weights",
        "engine_args": {},
        "checkpoints": versions,
        "prompt_token_ids": [[7, 8, 9, prompt] for prompt in range(3)],
        "sampling": {"temperature": 1.0, "ignore_eos": True},
        "runs": {run: {"requests": REQUESTS, "max_tokens": tokens} for run, tokens in lengths.items()},
        "drain_seconds": 600.0,
        "cases": cases,
        **job,
    }
    return launched(folder, ENGINE.update, document, ailment)


def case(mode: str = "keep", name: str = "case", **more: Any) -> dict[str, Any]:
    plain = {"clear_cache": False, "salted": False, "adapters": None, "read_back": False}
    return {"name": name, "mode": mode, **plain, **more}


def of(rows: list[Row], *runs: str) -> list[Row]:
    return [row for row in rows if row["run"] in runs]


@pytest.mark.parametrize("mode", ["keep", "none"])
def test_every_token_of_a_flight_is_given_to_the_version_that_sampled_it(tmp_path: Path, mode: str) -> None:
    # Without a pause the tokens of the update itself are given to no version: there must be some left after them.
    length = 9 if mode == "keep" else 90
    _, rows = play(tmp_path, case(mode, salted=True), length=length)
    for row in of(rows, "flight"):
        assert len(row["token_ids"]) == length
        for version, logprob in zip(row["versions"], row["logprobs"], strict=True):
            assert version is None or int(version) == int(-logprob) - 1
        assert {"0", "1"} <= set(row["versions"])
    assert all(row["finished"] == "1" for row in of(rows, "flight"))


def test_waiting_finishes_a_flight_with_the_old_weights(tmp_path: Path) -> None:
    _, rows = play(tmp_path, case("wait"))
    assert {tuple(set(row["versions"])) for row in of(rows, "flight")} == {("0",)}
    assert {tuple(set(row["versions"])) for row in of(rows, "after")} == {("1",)}


def test_an_abort_ends_a_flight_and_its_repeated_logprobs_are_not_taken_for_tokens(tmp_path: Path) -> None:
    _, rows = play(tmp_path, case("abort"))
    for row in of(rows, "flight"):
        assert row["finish_reason"] == "abort"
        assert len(row["token_ids"]) == len(row["logprobs"]) == row["surplus_logprobs"]


def test_what_the_cache_keeps_serves_the_next_requests_but_not_those_with_another_salt(tmp_path: Path) -> None:
    _, rows = play(tmp_path, case(), case(salted=True, name="salted"))
    cached = {row["case"]: row["cached_tokens"] for row in of(rows, "after")}
    assert cached == {"case": 4, "salted": 0}
    assert {row["cached_tokens"] for row in of(rows, "cold after")} == {0}
    assert {row["cached_tokens"] for row in of(rows, "flight", "warm after")} == {4}


def test_a_request_that_never_ends_is_lost_and_not_waited_for_beyond_the_limit(tmp_path: Path) -> None:
    outcome, rows = play(tmp_path, case(), ailment="lose")
    assert sum(row["lost"] for row in rows) == 1
    message = "RuntimeError: requests do not advance"
    assert outcome.result["problems"] == {"case": {"step": "settle", "status": "failed", "message": message}}


def test_tokens_that_come_while_paused_belong_to_no_version(tmp_path: Path) -> None:
    _, rows = play(tmp_path, case(), ailment="leak", length=60)
    assert any(version is None for version in of(rows, "flight")[0]["versions"])


def test_a_checkpoint_that_cannot_be_read_fails_the_update_and_nothing_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "weights.json").write_text('{"version')
    outcome, rows = play(tmp_path, case(), checkpoints={"0": str(tmp_path / "v0"), "1": str(tmp_path / "torn")})
    ended = outcome.result["problems"]["case"]
    assert (ended["step"], ended["status"]) == ("update", "failed") and "JSONDecodeError" in ended["message"]
    assert {row["error"] for row in of(rows, "flight", "after")} == {"given up after the update failed"}
    assert {tuple(set(row["versions"])) for row in of(rows, "flight")} == {("0",)}


def test_what_the_worker_holds_is_told_in_versions(tmp_path: Path) -> None:
    outcome, _ = play(tmp_path, case(read_back=True))
    (told,) = outcome.result["read_backs"]
    assert (told["believed"], told["logits"], told["tensors"]["w"]) == ("1", "1", "1")


def test_a_case_begins_with_version_0_and_an_empty_cache_whatever_the_last_one_left(tmp_path: Path) -> None:
    _, rows = play(tmp_path, case(), case("wait", "again"))
    again = [row for row in of(rows, "cold") if row["case"] == "again"]
    assert {row["cached_tokens"] for row in again} == {0}
    assert {tuple(set(row["versions"])) for row in again} == {("0",)}


def test_an_engine_that_the_job_is_not_about_fails_before_anything_is_sampled(tmp_path: Path) -> None:
    meant = {"kind": "V0", "because": "the recipe asks for V0", "way_out": "Write `engine: V1`."}
    outcome = outcome_of(tmp_path, case(), engine=meant)
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert outcome.failure.boundary == "engine"
    assert "vLLM loaded V1, but the recipe asks for V0. Write `engine: V1`." in outcome.failure.message
    assert not (tmp_path / "cell" / "samples.jsonl").exists()


@pytest.mark.parametrize(
    ("path", "ailment"), [("reload_weights", "before 0.16.0"), ("reload_from_iterator", "")], ids=["folder", "tensors"]
)
def test_a_reload_that_takes_no_new_weights_is_no_path_of_the_release(tmp_path: Path, path: str, ailment: str) -> None:
    outcome = outcome_of(tmp_path, case(), ailment=ailment, path=path)
    assert outcome.status == "unsupported" and outcome.failure is not None
    assert "reload_weights of this vLLM takes no weights_" in outcome.failure.message
