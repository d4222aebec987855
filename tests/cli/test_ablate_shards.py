"""Shards of a run: jobs that know nothing of each other, and one report of what they left."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from laboratories import ONE_FACTOR, V1, Laboratory, Run, without_cost

BLOCKS = [
    {**ONE_FACTOR, "parity": ["logprobs-mode", "prefix-caching"],
     "factors": {"logprobs-mode": "processed", "prefix-caching": "off"}},
    {"name": "again", "candidate": {"version": V1, "levels": {"logprobs-mode": "processed"}}, "repeats": 1},
]  # fmt: skip


def found(report: Any) -> Any:
    """Return what a report says, without which cells its own run has run: the shards have run them before a union."""
    return without_cost(report, "cells_run", "cells_kept")


def rollouts(run_dir: Path) -> set[str]:
    return {path.parent.name for path in run_dir.glob("cells/*/samples.jsonl")}


def shards(laboratory: Laboratory, recipe: Path, of: int) -> list[Run]:
    return [laboratory.ablate(recipe, "--shard", f"{number}/{of}") for number in range(1, of + 1)]


def folders(laboratory: Laboratory) -> list[Path]:
    return sorted(laboratory.run_dir.glob("shard-*"))


def merged(laboratory: Laboratory, *runs: Path) -> Run:
    return laboratory.command("ablate", "--merge", *map(str, runs), "--run-dir", str(laboratory.run_dir))


def test_shards_share_the_arms_out_and_without_shard_or_merged_they_report_as_a_single_run(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = laboratory.recipe(*BLOCKS)
    single = laboratory.ablate(recipe)
    laboratory.run_dir.rename(laboratory.folder / "single")
    done = shards(laboratory, recipe, 3)
    assert [one.exit_code for one in done] == [0, 0, 0]
    assert "shard 1 of 3 done" in done[0].stderr
    own = [rollouts(folder) for folder in folders(laboratory)]
    # What stood in the first one when the second began was taken over, and run by the first alone.
    assert len(own[0]) < len(own[1]) < len(own[2])
    assert not (laboratory.run_dir / "report.json").exists()
    whole = laboratory.ablate(recipe)
    assert whole.exit_code == single.exit_code
    assert found(whole.report) == found(single.report)
    assert own[2] <= rollouts(laboratory.run_dir)
    shutil.rmtree(laboratory.run_dir)
    for _ in range(3):  # arms; what is left out of parity; scores
        assert {one.exit_code for one in shards(laboratory, recipe, 2)} == {0}
    # Nothing of the machine is asked: it may be another one.
    monkeypatch.setattr("rlaudit.laboratory.run_setup.accelerator_identity", lambda _: {"kind": "none"})
    run = merged(laboratory, *folders(laboratory))
    assert run.exit_code == single.exit_code
    assert found(run.report) == found(single.report)
    assert run.report["run"]["cells_run"] == 0
    tokens = [folder / "tokens.parquet" for folder in (laboratory.run_dir, laboratory.folder / "single")]
    assert tokens[0].read_bytes() == tokens[1].read_bytes()


def test_shards_that_see_nothing_of_each_other_run_every_cell_once(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(*BLOCKS)
    own = []
    for number in (1, 2, 3):
        assert laboratory.ablate(recipe, "--shard", f"{number}/3").exit_code == 0
        (folder,) = folders(laboratory)
        own.append(rollouts(folder))
        folder.rename(laboratory.folder / f"node-{number}")
    assert not own[0] & own[1] and not own[1] & own[2] and not own[0] & own[2]
    assert max(map(len, own)) - min(map(len, own)) <= 1


def test_a_merge_runs_nothing_and_names_what_is_missing(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(*BLOCKS)
    assert laboratory.ablate(recipe, "--shard", "1/2").exit_code == 0
    run = merged(laboratory, *folders(laboratory))
    assert run.exit_code == 3
    assert "are in none of the runs" in run.stderr and "again: candidate again" in run.stderr
    assert not list(laboratory.run_dir.glob("cells/*/.lock"))


def test_runs_of_two_plans_are_not_merged(laboratory: Laboratory) -> None:
    laboratory.ablate(laboratory.recipe(*BLOCKS), "--shard", "1/2")
    laboratory.ablate(laboratory.recipe(*BLOCKS), "--shard", "2/2", "--seed", "7")
    run = merged(laboratory, *folders(laboratory))
    assert run.exit_code == 3 and "their recipes differ" in run.stderr
    shutil.rmtree(folders(laboratory)[1])
    laboratory.folder.joinpath("empty").mkdir()
    assert merged(laboratory, laboratory.folder / "empty").exit_code == 2


def test_a_cell_that_failed_in_a_shard_is_the_failure_it_would_have_been(laboratory: Laboratory) -> None:
    sick = {"name": "sick", "candidate": {"version": V1}, "repeats": 0,
            "environment_variables": {"FAKE_VLLM_AILMENT": "engine-core-dies"}}  # fmt: skip
    recipe = laboratory.recipe(BLOCKS[1], sick)
    single = laboratory.ablate(recipe)
    laboratory.run_dir.rename(laboratory.folder / "single")
    codes = [one.exit_code for one in shards(laboratory, recipe, 2)]
    assert sorted(codes) == [0, 3]
    shards(laboratory, recipe, 2)
    run = merged(laboratory, *folders(laboratory))
    assert run.exit_code == single.exit_code == 3
    assert found(run.report) == found(single.report)


def test_what_is_no_share_is_refused(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(*BLOCKS)
    for words in ("0/2", "3/2", "2", "a/b"):
        assert laboratory.ablate(recipe, "--shard", words).exit_code == 2
    assert laboratory.ablate(recipe, str(recipe)).exit_code == 2


def test_weight_updates_are_not_shared_out(laboratory: Laboratory) -> None:
    run = laboratory.command("ablate", "weight-update", "--cpu", "--shard", "1/2")
    assert run.exit_code == 2 and "cannot be shared out" in run.stderr
