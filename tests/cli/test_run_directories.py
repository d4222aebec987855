"""A run directory proves itself: damages, full disks and earlier runs never change a verdict in silence."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from damaged_runs import trials
from laboratories import V1, Laboratory

from rlaudit.laboratory.run_setup import RunSetup

PLAIN = {"name": "plain", "candidate": {"version": V1}, "repeats": 0}
DAMAGES = 8
# A bit, an end, an exchange and a loss of each kind of file.
SEED = 11


def test_damages_are_named_made_good_and_change_no_verdict(laboratory: Laboratory) -> None:
    done = list(trials(laboratory, DAMAGES, SEED))
    assert [trial for trial in done if trial.problems] == []
    assert sum(trial.decides for trial in done) >= DAMAGES // 2


@pytest.fixture
def two_seeds(laboratory: Laboratory) -> Laboratory:
    """A finished run, and then the same recipe with another seed, which was stopped before its first arm was done."""
    sickness = laboratory.folder / "sickness"
    variables = {"FAKE_VLLM_AILMENT": "engine-core-dies", "FAKE_VLLM_WHILE": str(sickness)}
    recipe = laboratory.recipe(PLAIN, environment_variables=variables)
    assert laboratory.ablate(recipe).exit_code == 1
    return laboratory


def stopped(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Give the command again, and lose it when the arms have been planned."""

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr("rlaudit.laboratory.study_run.trial_batch", kill)
        assert laboratory.ablate(laboratory.folder / "recipe.yaml", *more).exit_code == 130


def test_what_another_plan_left_is_never_taken_for_this_one_s(
    two_seeds: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(two_seeds, monkeypatch, "--seed", "9")
    folder = str(two_seeds.run_dir)
    for words in (("compare", folder), ("compare", f"{folder}/tokens.parquet"), ("diagnose", folder)):
        looked = two_seeds.command(*words)
        assert looked.exit_code in {2, 3}, words
        assert looked.stdout == ""
    compared = two_seeds.command("compare", folder)
    assert compared.exit_code == 3
    assert "has not finished" in compared.stderr
    reported = two_seeds.command("report", folder, "--output", "json")
    assert reported.exit_code == 3
    # Of this plan, the prompts' tokens are there; the arms that are there are the other plan's.
    assert json.loads(reported.stdout)["run"]["cells_run"] == 1


def test_the_same_plan_given_again_and_stopped_leaves_the_last_report_and_so_do_cells_that_were_cleared_away(
    two_seeds: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = two_seeds.command("report", str(two_seeds.run_dir), "--output", "json")
    provenance = RunSetup.provenance
    monkeypatch.setattr(RunSetup, "provenance", lambda setup: {**provenance(setup), "date": "2030-01-01 00:00 UTC"})
    stopped(two_seeds, monkeypatch, "--quiet")
    after = two_seeds.command("report", str(two_seeds.run_dir), "--output", "json")
    assert (after.exit_code, after.stdout) == (1, before.stdout)
    assert two_seeds.command("compare", str(two_seeds.run_dir), "--quiet").exit_code == 1
    (two_seeds.run_dir / "cells").rename(two_seeds.folder / "elsewhere")
    cleared = two_seeds.command("report", str(two_seeds.run_dir), "--output", "json")
    assert (cleared.exit_code, cleared.stdout) == (1, before.stdout)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, in this process and those it starts, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1_500, 20_000])
def test_a_disk_that_takes_no_more_ends_with_3_and_the_run_goes_on_once_there_is_room(
    laboratory: Laboratory, size: int
) -> None:
    recipe = laboratory.recipe(PLAIN)
    with files_of_at_most(size):
        full = laboratory.ablate(recipe)
    assert full.exit_code == 3
    assert "File too large" in full.stderr
    assert "Traceback" not in full.stderr
    again = laboratory.ablate(recipe)
    assert again.exit_code == 1
    assert not list(laboratory.run_dir.rglob(".rlaudit-draft-*"))


def test_a_report_that_does_not_fit_leaves_the_last_one(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(PLAIN)
    first = laboratory.ablate(recipe, "--output", f"json:{laboratory.folder / 'own.json'}")
    before = [(laboratory.run_dir / name).read_bytes() for name in ("report.json", "tokens.parquet")]
    own = (laboratory.folder / "own.json").read_bytes()
    with files_of_at_most(len(before[0]) // 2):
        full = laboratory.ablate(recipe, "--output", f"json:{laboratory.folder / 'own.json'}")
        written = laboratory.command(
            "report", str(laboratory.run_dir), "--output", f"json:{laboratory.folder / 'own.json'}"
        )
    assert (first.exit_code, full.exit_code, written.exit_code) == (1, 3, 3)
    assert before == [(laboratory.run_dir / name).read_bytes() for name in ("report.json", "tokens.parquet")]
    assert (laboratory.folder / "own.json").read_bytes() == own
    assert laboratory.command("report", str(laboratory.run_dir)).exit_code == 1
