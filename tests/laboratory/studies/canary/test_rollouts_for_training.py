"""The shipped script that samples for a training, in a real process beside a trainer, on an engine whose every logprob
is known: -(1 + version), less 0.25 where the keys of its prompt are of older weights."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_engine import launched, weights

from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.inside.engine import ENGINE

HERE = Path(__file__).parent


def play(
    folder: Path, training: dict[str, Any] | None = None, ailment: str = "", **job: Any
) -> tuple[Outcome, list[dict[str, Any]]]:
    document = {
        "model": str(weights(folder / "v0")),
        "path": "reload_weights",
        "transport": "disk",
        "seconds": 600.0,
        "engine_args": {"enable_prefix_caching": True},
        "mode": "wait",
        "clear_cache": True,
        "reset_cache": False,
        "fp32_head": False,
        "sampling": {"temperature": 0.7, "max_tokens": 4, "ignore_eos": True},
        "trainer": {
            "command": [sys.executable],
            "script": str(HERE / "stand_ins" / "train.py"),
            "variables": {},
            "job": {"steps": 3, "lag": 0, "skip": [], "prompt_token_ids": [[7, 8], [9, 8]], **(training or {})},
        },
        **job,
    }
    outcome = launched(folder, ENGINE.train, document, ailment)
    log = folder / "cell" / "metrics.jsonl"
    return outcome, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_each_batch_is_sampled_with_the_weights_of_the_update_before_it(tmp_path: Path) -> None:
    outcome, rows = play(tmp_path)
    assert outcome.status == "ok", outcome.failure
    assert [row["versions"] for row in rows] == [[[version] * 4] * 3 for version in range(3)]
    assert [row["rlaudit/in_flight"] for row in rows] == [0, 0, 0]
    assert [row["logprobs"] for row in rows] == [[[-1.0 - version] * 4] * 3 for version in range(3)]
    assert (outcome.result["updates"], outcome.result["generated_tokens"]) == (2, 36)


def test_a_cache_that_is_kept_serves_keys_of_older_weights_and_one_that_is_reset_does_not(tmp_path: Path) -> None:
    for name, changes, stale in (
        ("kept", {"mode": "keep", "clear_cache": False}, 0.25),
        ("reset", {"mode": "keep", "clear_cache": False, "reset_cache": True}, 0.0),
    ):
        (tmp_path / name).mkdir()
        _, rows = play(tmp_path / name, **changes)
        assert rows[1]["logprobs"][0] == [-2.0 - stale] * 4


def test_what_the_engine_reads_of_its_environment_is_none_of_the_trainers(tmp_path: Path) -> None:
    assert play(tmp_path)[0].result["trainer"]["vllm"] == []


def test_updates_meet_batches_that_were_begun_ahead_and_every_token_is_of_the_version_that_sampled_it(
    tmp_path: Path,
) -> None:
    changes = {"mode": "keep", "engine_args": {"enable_prefix_caching": False}}
    sampling = {"temperature": 0.7, "max_tokens": 40, "ignore_eos": True}
    outcome, rows = play(tmp_path, {"lag": 2, "steps": 6}, "meets-updates", sampling=sampling, **changes)
    assert outcome.status == "ok", outcome.failure
    for row in rows:
        for versions, logprobs in zip(row["versions"], row["logprobs"], strict=True):
            # The stand-in says by its logprob which weights it had; its keys are computed again at every pause.
            assert versions == [int(-value) - 1 for value in logprobs]
            assert versions == sorted(versions)
            assert all(0 <= row["step"] - 1 - version <= 2 for version in versions)
    # The last update finds no batch that was begun after the one before it.
    assert all(row["rlaudit/in_flight"] for row in rows[1:-1])
    assert all(len(set(versions)) > 1 for row in rows[1:] for versions in row["versions"])


def test_whoever_watches_is_told_reward_and_clip_rate(tmp_path: Path) -> None:
    play(tmp_path)
    events = [json.loads(line) for line in (tmp_path / "cell" / "events.jsonl").read_text().splitlines()]
    said = [event for event in events if event["event"] == "progress"]
    assert [(event["done"], event["total"]) for event in said] == [(1, 3), (2, 3), (3, 3)]
    assert said[0]["said"] == "reward 0.500, clipped 0.50"


@pytest.mark.parametrize(("ailment", "code"), [("dies_at", 7), ("killed_at", -9)])
def test_a_trainer_that_dies_ends_its_cell_and_keeps_what_was_logged(tmp_path: Path, ailment: str, code: int) -> None:
    outcome, rows = play(tmp_path, {ailment: 2})
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert f"the trainer ended with code {code}" in outcome.failure.message
    assert len(rows) == 1
