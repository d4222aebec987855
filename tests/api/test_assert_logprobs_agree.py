"""`rlaudit.testing.assert_logprobs_agree`: passes where nothing mismatches, and says in words what does."""

from typing import Any

import pytest
from small_rollouts import TEMPERATURE, small_rollouts

from rlaudit.errors import UsageError
from rlaudit.layers import Verdict
from rlaudit.testing import assert_logprobs_agree

SMALL = (32, 4, 8)


def failed(table: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as failure:
        assert_logprobs_agree(table, temperature=TEMPERATURE, **options)
    return str(failure.value)


@pytest.mark.parametrize("seed", range(3))
def test_a_small_test_names_raw_logprobs_and_what_to_set(seed: int) -> None:
    first, because, measured, to_do = failed(small_rollouts(seed, *SMALL, raw=True)).split("\n")
    assert first == "The engine's logprobs are not what the trainer assumes: raw-logprobs (semantic layer)."
    # By the mean ratio or by samples of one prompt, which alone would do.
    assert "logprobs" in because
    assert measured.startswith("  mean ratio - 1 ") and measured.endswith(", of 1024 tokens")
    assert to_do.startswith("  To do: set logprobs_mode=processed_logprobs")


@pytest.mark.parametrize("size", [SMALL, (2, 1, 8)])
def test_processed_logprobs_pass_however_few_they_are(size: tuple[int, int, int]) -> None:
    report = assert_logprobs_agree(small_rollouts(0, *size), temperature=TEMPERATURE)
    assert all(layer.verdict is not Verdict.MISMATCH for layer in report["layers"])


def test_a_mismatch_without_a_cause_fails_and_says_so() -> None:
    assert "unexplained bias" in failed(small_rollouts(0, 32, 1, 8, raw=True))


def test_a_match_takes_more_than_that_nothing_was_found() -> None:
    few = failed(small_rollouts(0, *SMALL, entropies=True), require="match")
    assert few.startswith("No match is shown in the semantic layer (nothing found).")
    many = assert_logprobs_agree(
        small_rollouts(0, 128, 4, 16, entropies=True), temperature=TEMPERATURE, require="match"
    )
    assert {layer.verdict for layer in many["layers"]} == {Verdict.MATCH}


def test_data_that_cannot_be_used_fail_unless_they_may_be_left_out() -> None:
    table = small_rollouts(0, *SMALL)
    table["rollout_logprob"] = [0.5, *table["rollout_logprob"][1:]]
    message = failed(table)
    assert "a part of it cannot be used" in message and "prompt 0, sample 0" in message
    assert_logprobs_agree(table, temperature=TEMPERATURE, allow_partial=True)


def test_a_mismatch_is_said_although_some_data_cannot_be_used() -> None:
    table = small_rollouts(0, *SMALL, raw=True)
    table["rollout_logprob"] = [0.5, *table["rollout_logprob"][1:]]
    assert "raw-logprobs" in failed(table)


def test_another_requirement_is_refused() -> None:
    with pytest.raises(UsageError, match="require is 'a match'"):
        assert_logprobs_agree({}, require="a match")
