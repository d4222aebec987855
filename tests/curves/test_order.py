"""Which metric was first, and what is claimed from it."""

from dataclasses import replace
from pathlib import Path

import pytest

from rlaudit.curves.comparison import Comparison, CurveMetric, Outcome, Steps, undecided
from rlaudit.curves.curve import Run
from rlaudit.curves.metric_names import known_metric
from rlaudit.curves.order import Precedence, order_of
from rlaudit.curves.pairing import Pair

STEPS = Steps(first=0, last=199, count=200)


def result(key: str, onset: int | None = None, detected: int | None = None) -> CurveMetric:
    outcome = Outcome.NOT_SEPARATED if detected is None else Outcome.SEPARATED
    blank = undecided(key, Pair(key, key, known_metric(key)), "")
    return replace(blank, outcome=outcome, detected_step=detected, onset_step=onset, steps=STEPS)


def at_once(key: str) -> CurveMetric:
    return replace(result(key, 1, 1), from_the_start=True)


def comparison(*results: CurveMetric) -> Comparison:
    run = Run("run", (Path("run"),), "CSV", "step", {}, ())
    return Comparison((run,), run, results, (), 0.05)


KL, REWARD, ENTROPY = "rollout_corr/k3_kl", "critic/rewards/mean", "actor/entropy"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([result(KL), result(REWARD)], Precedence.NOTHING),
        ([result(KL, 10, 14), result(REWARD, 60, 70)], Precedence.LOGPROBS_FIRST),
        ([result(KL, 60, 70), result(REWARD, 10, 14)], Precedence.TRAINING_FIRST),
        ([result(KL, 10, 14), result(REWARD, 12, 70)], Precedence.UNDECIDED),
        ([result(KL, 62, 62), result(REWARD, 50, 54)], Precedence.UNDECIDED),
        ([result(KL, 1, 2), result(REWARD, 3, 4)], Precedence.LOGPROBS_FIRST),
        ([at_once(KL), result(REWARD, 1, 9)], Precedence.FROM_THE_START),
        ([at_once(KL), at_once(REWARD)], Precedence.FROM_THE_START),
        ([result(KL, 1, 9), at_once(REWARD)], Precedence.UNDECIDED),
        ([result(KL, 10, 14), result(REWARD)], Precedence.LOGPROBS_ONLY),
        ([result(KL), result(REWARD, 10, 14)], Precedence.TRAINING_ONLY),
        ([result(ENTROPY), result(REWARD, 10, 14)], Precedence.UNKNOWN),
    ],
)
def test_the_order_is_read_from_what_left_its_band_before_the_other_began(
    results: list[CurveMetric], expected: Precedence
) -> None:
    assert order_of(comparison(*results)).precedence is expected


@pytest.mark.parametrize(("onset", "is_said"), [(0, True), (1, True), (2, False), (10, False)])
def test_a_difference_from_the_first_step_on_is_no_work_of_the_policy(onset: int, is_said: bool) -> None:
    """A curve that begins to part at step 2 may have an update as its cause: a cache kept over it did so."""
    found = order_of(comparison(result(KL, onset, 14), result(REWARD, 60, 70)))
    assert ("no update can be the cause" in found.suggests) is is_said


def test_a_metric_of_the_current_policy_leaves_staleness_open() -> None:
    found = order_of(comparison(result("mismatch_kl/all/mean", 30, 34), result(REWARD, 60, 70)))
    assert "staleness" in found.suggests


def test_a_missing_mismatch_metric_names_how_to_log_it() -> None:
    assert "calculate_log_probs" in order_of(comparison(result(ENTROPY, 3, 9))).next


def test_training_alone_does_not_clear_the_logprobs() -> None:
    assert "raw logprobs" in order_of(comparison(result(KL), result(REWARD, 10, 14))).suggests


def test_a_clip_fraction_against_the_rollout_is_no_metric_of_the_training():
    clipped = "rl/clamp_log_ratio_new_old_indicator"
    found = order_of(comparison(result("rl/kl_new_old", 1, 2), result(clipped, 1, 2), result("rl/reward", 16, 21)))
    assert found.precedence is Precedence.LOGPROBS_FIRST
    assert "rl/reward" in found.because
