"""The verdict of the inference path on figures: which yardstick decides, and what a reference may vouch for."""

import numpy as np
import pytest
from two_arms import BFLOAT16_LIKE, two_arms

from rlaudit.diagnosis.consequence import MEAN_SQUARES, consequence
from rlaudit.diagnosis.distance import USUAL, Candidate, Reference, Yardstick, judge_distance, usual_distance
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.measure import all_metrics, measure, tally
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings
from rlaudit.text.plain import plain
from rlaudit.tokens.pairs import LogprobPairs

NARROW = ObjectiveSettings(gspo_epsilon_low=3e-4, gspo_epsilon_high=4e-4, clips=(Clip.SEQUENCES,))
WIDE = ObjectiveSettings(gspo_epsilon_low=3e-4, gspo_epsilon_high=4e-4, clips=(Clip.TOKENS,))
BFLOAT16 = USUAL[-1]
METRICS = [all_metrics()[name] for name in ("k3", *MEAN_SQUARES.values(), *(clip.value for clip in Clip))]


def candidate(pairs, settings=NARROW, **more):
    measured = measure(pairs, settings, METRICS, replicates=500)
    return Candidate(measured, tally(pairs, METRICS, settings), int(pairs.sequence_lengths_S.min()), **more)


def reference(pairs, semantic=Verdict.MATCH, usual=BFLOAT16):
    k3 = measure(pairs, NARROW, METRICS, replicates=500)["k3"]
    return Reference("before", k3, tally(pairs, METRICS, NARROW), semantic, semantic is Verdict.MATCH, usual)


def judged(times=1.0, k3=1e-3, settings=NARROW, margin=None, held=True, semantic=Verdict.MATCH, prompts=64):
    new, today = two_arms(2, prompts, times, BFLOAT16_LIKE, completions=4, k3=k3)
    other = reference(today, semantic) if held else None
    return judge_distance(candidate(new, settings, usual=BFLOAT16), settings, margin, other, replicates=500)


@pytest.mark.parametrize("k3", [7e-4, 2e-3])
def test_an_engine_in_bfloat16_that_is_no_farther_than_todays_is_no_mismatch(k3):
    found = judged(k3=k3)
    assert (found.verdict, found.yardstick) == (Verdict.MATCH, Yardstick.REFERENCE)
    # What it clips is said all the same: that is what the next layer judges.
    assert found.consequence.verdict is Verdict.MISMATCH


def test_the_same_engine_without_a_reference_is_judged_by_what_the_clip_range_feels():
    for settings, verdict in ((NARROW, Verdict.MISMATCH), (WIDE, Verdict.MATCH)):
        found = judged(k3=7e-4, settings=settings, held=False)
        assert (found.verdict, found.yardstick) == (verdict, Yardstick.CONSEQUENCE)


@pytest.mark.parametrize(
    ("moved", "stated", "verdict"),
    [
        (0.05, True, Verdict.MISMATCH),
        (0.05, False, Verdict.INCONCLUSIVE),
        (0.6, False, Verdict.MISMATCH),
        (0.0, False, Verdict.MATCH),
    ],
)
def test_a_few_sequences_out_of_gspos_range_are_a_mismatch_only_if_the_objective_has_it(
    moved: float, stated: bool, verdict: Verdict
) -> None:
    random = np.random.default_rng(3)
    sequences, length = 1200, 20
    shift_S = np.where(random.random(sequences) < moved, 0.05, 0.0) * random.choice([-1.0, 1.0], sequences)
    sequence_T = np.repeat(np.arange(sequences), length)
    pairs = LogprobPairs(
        rollout_logprobs_T=np.full(sequences * length, -2.0),
        trainer_logprobs_T=-2.0 + shift_S[sequence_T],
        sequence_T=sequence_T,
        prompt_S=np.arange(sequences) // 2,
    )
    settings = ObjectiveSettings(stated=stated)
    assert consequence(candidate(pairs, settings).measurements, settings).verdict is verdict


def test_an_engine_twice_as_far_as_todays_is_a_mismatch_below_any_absolute_margin():
    found = judged(times=2.0, k3=3.5e-4)
    assert (found.verdict, found.against.paired) == (Verdict.MISMATCH, True)
    assert found.k3.value < 1e-3


def test_a_difference_that_no_range_can_feel_is_no_mismatch_however_exact_the_reference_is():
    found = judged(times=4.0, k3=1e-11)
    assert found.verdict is Verdict.MATCH
    assert found.against.ratio > 3


def test_noise_is_a_floor_as_well():
    new, today = two_arms(2, 64, 4.0, BFLOAT16_LIKE, k3=1e-8)
    for noise, verdict in ((0.0, Verdict.MISMATCH), (1e-6, Verdict.MATCH)):
        found = judge_distance(candidate(new, noise=noise), NARROW, None, reference(today), replicates=500)
        assert found.verdict is verdict


@pytest.mark.parametrize(("margin", "verdict"), [(1e-2, Verdict.MATCH), (1e-5, Verdict.MISMATCH)])
def test_a_margin_of_the_users_own_wins_over_the_reference(margin, verdict):
    found = judged(times=2.0, margin=margin)
    assert (found.verdict, found.yardstick, found.tolerated) == (verdict, Yardstick.MARGIN, margin)


@pytest.mark.parametrize("semantic", [Verdict.MISMATCH, Verdict.INCONCLUSIVE])
def test_a_reference_whose_logprobs_mean_something_else_is_shown_and_does_not_serve(semantic):
    found = judged(k3=7e-4, semantic=semantic)
    assert (found.verdict, found.yardstick, found.against) == (Verdict.MISMATCH, Yardstick.CONSEQUENCE, None)
    assert found.reference is not None and not found.reference.serves


def test_a_broken_reference_does_not_clear_a_candidate_that_is_as_broken():
    found = judged(k3=3e-2)
    assert found.against.verdict is Verdict.MATCH
    assert (found.verdict, found.withheld) == (Verdict.INCONCLUSIVE, True)


def test_a_broken_reference_lets_pass_a_candidate_as_close_as_is_usual():
    found = judged(times=0.1, k3=3e-2)
    assert (found.reference.odd, found.verdict) == (True, Verdict.MATCH)


def test_a_candidate_farther_than_a_broken_reference_is_a_mismatch():
    assert judged(times=2.5, k3=3e-2).verdict is Verdict.MISMATCH


def test_few_prompts_rule_nothing_out():
    found = judged(prompts=8, k3=1e-9, held=False, settings=WIDE)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert judged(prompts=8).verdict is Verdict.INCONCLUSIVE


def test_what_is_let_pass_is_known_in_nats():
    assert judged().tolerated == pytest.approx(judged().against.allowed)
    felt = judged(k3=1e-3, held=False)
    # GSPO's 3e-4, squared, times 1 % by half, and less for short sequences.
    assert 1e-10 < felt.tolerated < 4.5e-10
    unfelt = judged(k3=7e-4, held=False, settings=WIDE)
    assert unfelt.tolerated >= unfelt.k3.high


def test_the_report_has_every_figure_of_the_verdict():
    for found in (judged(), judged(held=False), judged(margin=1e-3)):
        written = plain(found.reported)
        assert written["verdict"] == found.verdict.value
        assert (written["against"] is None) == (found.yardstick is not Yardstick.REFERENCE)


@pytest.mark.parametrize(
    ("engine", "trainer", "dtype"),
    [("bfloat16", "float32", "bfloat16"), ("float32", "float32", "float32"), ("float16", "float32", "float16")],
)
def test_the_coarser_side_makes_the_distance(engine, trainer, dtype):
    assert usual_distance(engine, trainer).dtype == usual_distance(trainer, engine).dtype == dtype


def test_what_nobody_published_has_no_usual_distance():
    assert usual_distance("fp8", "bfloat16") is None
