"""The verdict while arms are still to come, and a run that ends with it."""

import re

import pytest
from laboratories import V0, V1, Laboratory, Run

MIGRATION = {
    "name": "migration",
    "reference": {"version": V0},
    "candidate": {"version": V1},
    "factors": {"logprobs-mode": "processed", "prefix-caching": "off", "dummy": "on"},
    "parity": ["logprobs-mode", "prefix-caching"],
    "repeats": 1,
}
OTHER = {"name": "other", "candidate": {"version": V1}, "factors": {"dummy": "on"}, "repeats": 0}
DECIDING = ["candidate", "candidate + logprobs-mode=processed", "reference"]


@pytest.fixture(scope="module")
def whole(shared_laboratory: Laboratory) -> Run:
    return shared_laboratory.ablate(shared_laboratory.recipe(MIGRATION, OTHER, name="whole"))


def looks(run: Run) -> list[str]:
    """What is said at each look."""
    return re.split(r"so far: ", run.stderr)[1:]


def verdicts(look: str) -> list[str]:
    return [re.sub(r"\s+", " ", line) for line in re.findall(r"\d\. ([a-z ]+ [A-Z ]+(?:: [^\n]*)?)\n", look)]


def test_what_decides_runs_first(whole: Run) -> None:
    started = re.findall(r"\d+/\d+ migration: ([^(]*) \(vLLM", whole.stderr)
    assert started[:3] == DECIDING


def test_the_layers_are_said_after_the_arms_that_decide_and_after_each_block(whole: Run) -> None:
    candidate, without_reference, first, second = looks(whole)
    for number, look in enumerate((candidate, without_reference), start=1):
        assert look.startswith(f"{number} of 12 arms")
        assert "raw logprobs" in verdicts(look)[0]
        assert [verdict.split()[-2:] for verdict in verdicts(look)[1:]] == [["NOT", "TESTED"]] * 2
        assert "waits for the reference" in look
    assert first.startswith("3 of 12 arms")
    assert "raw logprobs" in verdicts(first)[0]
    assert "final" in first
    assert second.startswith("10 of 12 arms")


def test_the_first_verdict_is_the_last_one(whole: Run) -> None:
    assert whole.layer("semantic")["verdict"] == "mismatch"
    assert whole.layer("semantic")["cause"] in looks(whole)[0]


def test_sequences_that_a_look_had_scored_are_not_scored_again(whole: Run) -> None:
    books = whole.report["run"]
    # The first look has the trainer score them, and so does no other.
    assert len(re.findall(r"ok +trainer \d+/\d+: ", whole.stderr)) == 1
    assert books["sequences_scored"] == 32
    assert books["sequences_sampled"] == 12 * 32


def test_until_verdict_ends_with_the_arms_that_decide(laboratory: Laboratory) -> None:
    run = laboratory.ablate(laboratory.recipe(MIGRATION, OTHER), "--until", "verdict")
    assert run.exit_code == 1
    assert sorted(arm["name"] for arm in run.report["arms"]) == sorted(DECIDING)
    assert run.layer("semantic")["verdict"] == "mismatch"
    assert "9 of 12 arms were not run" in "\n".join(run.report["not_seen"])


def test_a_run_that_ended_early_goes_on_without_the_option(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(MIGRATION)
    early = laboratory.ablate(recipe, "--until", "verdict")
    run = laboratory.ablate(recipe)
    assert len(early.report["arms"]) == 3
    assert len(run.report["arms"]) == 10
    assert run.report["run"]["cells_kept"] >= 4


def test_until_verdict_runs_everything_if_nothing_is_found(laboratory: Laboratory) -> None:
    processed = {"version": V1, "levels": {"logprobs-mode": "processed"}}
    block = {
        "name": "clean",
        "candidate": processed,
        "factors": {"prefix-caching": "off"},
        "parity": ["prefix-caching"],
    }
    run = laboratory.ablate(laboratory.recipe({**block, "repeats": 0}), "--until", "verdict")
    assert len(run.report["arms"]) == 2
    assert not any("were not run" in line for line in run.report["not_seen"])
