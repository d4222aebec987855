import dataclasses
import json

import pytest
from two_arms import BFLOAT16_LIKE, two_arms

from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.measure import all_metrics, measure, tally
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.statistics.measurement.non_inferiority import TIMES, non_inferiority
from rlaudit.text.plain import plain

K3 = all_metrics()["k3"]
FLOOR = 1e-9


def held(candidate, reference, floor=FLOOR, **more):
    return non_inferiority(tally(candidate, [K3]), tally(reference, [K3]), K3, floor, replicates=500, **more)


def over_other_prompts(pairs, prompts):
    return dataclasses.replace(pairs, prompt_S=pairs.prompt_S + prompts, prompts=2 * prompts)


@pytest.mark.parametrize(
    ("times", "verdict"), [(0.5, Verdict.MATCH), (1.0, Verdict.MATCH), (2.0, Verdict.MISMATCH), (8.0, Verdict.MISMATCH)]
)
def test_a_candidate_is_held_against_the_reference_and_not_against_a_number(times, verdict):
    for size in (1e-8, 1e-3, 1e-2):
        found = held(*two_arms(1, 64, times, BFLOAT16_LIKE, completions=4, k3=size))
        assert found.verdict is verdict, size
        assert found.ratio == pytest.approx(times, rel=0.2)
        assert found.used == pytest.approx(found.candidate / found.allowed)


def test_too_few_tokens_decide_nothing():
    found = held(*two_arms(1, 20, 1.3, BFLOAT16_LIKE))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.low < 1.0 < found.high


def test_a_distance_below_the_floor_matters_to_nothing_whatever_the_reference_is():
    candidate, reference = two_arms(1, 64, 4.0, BFLOAT16_LIKE, k3=1e-11)
    assert held(candidate, reference, floor=1e-13).verdict is Verdict.MISMATCH
    assert held(candidate, reference, floor=1e-9).verdict is Verdict.MATCH


def test_a_reference_that_equals_its_trainer_allows_the_floor_and_no_more():
    candidate, reference = two_arms(1, 64, 1.0, BFLOAT16_LIKE)
    exact = dataclasses.replace(reference, trainer_logprobs_T=reference.rollout_logprobs_T)
    found = held(candidate, exact)
    assert (found.verdict, found.allowed, found.ratio) == (Verdict.MISMATCH, FLOOR, None)
    same = held(exact, exact)
    assert same.verdict is Verdict.MATCH
    json.dumps(plain([found, same]), allow_nan=False)


def test_of_one_absurd_token_an_end_beyond_any_float_is_told_as_a_float():
    candidate, reference = two_arms(1, 64, 1.0, BFLOAT16_LIKE)
    rollout_logprobs_T, trainer_logprobs_T = (
        arm.copy() for arm in (candidate.rollout_logprobs_T, candidate.trainer_logprobs_T)
    )
    rollout_logprobs_T[0], trainer_logprobs_T[0] = -600.0, 0.0
    absurd = dataclasses.replace(
        candidate, rollout_logprobs_T=rollout_logprobs_T, trainer_logprobs_T=trainer_logprobs_T
    )
    found = held(absurd, reference)
    assert found.verdict is Verdict.INCONCLUSIVE
    json.dumps(plain(found), allow_nan=False)


def test_arms_over_other_prompts_are_compared_by_clusters_of_their_own():
    candidate, reference = two_arms(3, 64, 2.0, BFLOAT16_LIKE, completions=4)
    apart = held(over_other_prompts(candidate, 64), reference)
    paired = held(candidate, reference)
    assert (apart.paired, apart.clusters, paired.paired, paired.clusters) == (False, 64, True, 64)
    assert apart.used == pytest.approx(paired.used)
    assert (apart.verdict, paired.verdict) == (Verdict.MISMATCH, Verdict.MISMATCH)
    assert apart.high - apart.low > paired.high - paired.low


def test_a_few_shared_prompts_do_not_stand_for_the_rest():
    candidate, reference = two_arms(3, 64, 2.0, BFLOAT16_LIKE)
    shifted = dataclasses.replace(candidate, prompt_S=candidate.prompt_S + 60, prompts=124)
    assert held(shifted, reference).clusters == 64
    shifted = dataclasses.replace(candidate, prompt_S=candidate.prompt_S + 40, prompts=104)
    assert (held(shifted, reference).paired, held(shifted, reference).clusters) == (True, 24)


def test_a_handful_of_prompts_is_no_evidence_however_many_the_other_arm_has():
    candidate, reference = two_arms(3, 64, 1.0, BFLOAT16_LIKE, completions=8)
    few = candidate.keep(candidate.prompt_T < 6)
    found = held(over_other_prompts(few, 64), reference)
    assert (found.reliable, found.reason) == (False, "6 prompts, below 16")
    assert found.verdict is Verdict.INCONCLUSIVE


def test_an_arm_without_tokens_has_no_figure():
    candidate, reference = two_arms(3, 20, 1.0, BFLOAT16_LIKE)
    nothing = tally(candidate, [K3], ObjectiveSettings())
    empty = dataclasses.replace(nothing, tokens_P=nothing.tokens_P * 0, sequences_P=nothing.sequences_P * 0, sums={})
    found = non_inferiority(empty, tally(reference, [K3]), K3, FLOOR)
    assert (found.used, found.verdict, found.reason) == (None, Verdict.INCONCLUSIVE, "one of the arms has no token")


def test_the_figures_are_those_of_the_arms():
    candidate, reference = two_arms(5, 40, 1.5, BFLOAT16_LIKE)
    found = held(candidate, reference)
    assert found.candidate == pytest.approx(measure(candidate, metrics=[K3], replicates=2)["k3"].value)
    assert found.reference == pytest.approx(measure(reference, metrics=[K3], replicates=2)["k3"].value)
    assert found.allowed == pytest.approx(TIMES * found.reference + FLOOR)


def test_a_floor_of_nothing_is_refused():
    pairs, _ = two_arms(5, 4, 1.0, BFLOAT16_LIKE)
    with pytest.raises(ValueError, match="must be above 0"):
        held(pairs, pairs, floor=0.0)
