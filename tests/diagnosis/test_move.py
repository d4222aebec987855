"""What a move changes is derived from both of its sides, and left open where one has no verdict."""

from dataclasses import replace

import numpy as np
import pytest

from rlaudit.diagnosis.answer import answer
from rlaudit.diagnosis.judgement import counted, exit_code_of
from rlaudit.diagnosis.measured import at_temperature
from rlaudit.diagnosis.move import METRIC, Change, Move, Side, change_of_distance, changes_of
from rlaudit.layers import Layer, Verdict, judged_as
from rlaudit.severity import FailFor
from rlaudit.statistics.measurement.measure import all_metrics, measure, tally
from rlaudit.tokens.pairs import LogprobPairs

MATCH, FOUND, OFF, OPEN, UNTESTED = (
    Verdict.MATCH, Verdict.NOTHING_FOUND, Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED,
)  # fmt: skip
NEARER = (Change.NEARER, "k3 0.0192 -> 0.0025 nats")


def side(semantic, objective=MATCH, causes=(), ratio=None):
    return Side(vllm="0.18.1", layers=(semantic, objective, objective), causes=causes, ratio=ratio)


@pytest.mark.parametrize(
    ("today", "after", "expected"),
    [
        (side(MATCH), side(FOUND), Change.SAME),
        (side(MATCH), side(OFF, causes=("raw-logprobs",)), Change.BROKEN),
        (side(OFF, causes=("raw-logprobs",)), side(MATCH), Change.FIXED),
        (side(OFF, causes=("raw-logprobs",)), side(OFF, causes=("raw-logprobs",)), Change.SAME),
        (side(OFF, causes=("filters-not-replayed",)), side(OFF, causes=("raw-logprobs",)), Change.CHANGED),
        (side(OFF, causes=("a", "b")), side(OFF, causes=("b",)), Change.FIXED),
        (side(OPEN), side(OFF, causes=("raw-logprobs",)), Change.UNKNOWN),
        (side(MATCH), side(UNTESTED), Change.UNKNOWN),
        (None, side(MATCH), Change.UNKNOWN),
    ],
)
def test_the_first_layer_is_changed_by_causes_that_only_one_side_has(today, after, expected):
    assert changes_of(today, after, NEARER)[0].change is expected


@pytest.mark.parametrize(
    ("today", "after", "expected"),
    [
        (side(MATCH), side(MATCH), Change.SAME),
        (side(MATCH, OFF), side(MATCH, OFF), Change.SAME),
        (side(MATCH), side(MATCH, OFF), Change.BROKEN),
        (side(MATCH, OFF), side(MATCH), Change.FIXED),
        (side(MATCH, OPEN), side(MATCH), Change.UNKNOWN),
        (side(OFF, UNTESTED), side(OFF, UNTESTED), Change.UNKNOWN),
    ],
)
def test_the_objective_is_changed_by_what_leaves_the_clip_range(today, after, expected):
    assert changes_of(today, after, NEARER)[2].change is expected


def pairs_of(noise, seed, prompts=32, tokens=40):
    random = np.random.default_rng(seed)
    rollout_T = -2.0 - random.exponential(1.0, prompts * tokens)
    return LogprobPairs(
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=rollout_T + random.normal(0.0, noise, rollout_T.size),
        sequence_T=np.repeat(np.arange(prompts), tokens),
        prompt_S=np.arange(prompts),
        entropy_T=None,
        prompts=prompts,
    )


def k3_of(noise, seed, prompts=32):
    return tally(pairs_of(noise, seed, prompts), [all_metrics()[METRIC]])


@pytest.mark.parametrize(
    ("today", "after", "expected"),
    [
        (0.03, 0.03, Change.SAME),
        (0.2, 0.07, Change.NEARER),
        (0.07, 0.2, Change.FARTHER),
        (1e-7, 1e-5, Change.SAME),  # below what matters
    ],
)
def test_an_engine_is_nearer_or_farther_only_beyond_noise_and_what_matters(today, after, expected):
    for seed in range(3):
        change, because = change_of_distance(k3_of(today, seed), k3_of(after, seed + 100), unfelt=1e-8)
        assert change is expected
        assert ("both negligible" in because) == (after < 1e-4)


def test_distances_within_the_noise_of_repeats_are_not_called_negligible():
    change, because = change_of_distance(k3_of(0.03, 1), k3_of(0.03, 2), unfelt=1e-8, noise=1.0)
    assert change is Change.SAME
    assert because.endswith("both within the noise of repeats")


def test_raw_and_processed_logprobs_of_one_engine_are_as_far_from_the_trainer():
    """Errors of logits, reported at T=1 and at T=0.6: a raw report only looks nearer."""
    random, tokens = np.random.default_rng(1), 4000
    logits_TV = random.normal(0.0, 3.0, (tokens, 50))
    engine_TV = logits_TV + random.normal(0.0, 0.05, logits_TV.shape)

    def pairs_at(temperature):
        rollout_T, trainer_T = (
            (rows_TV / temperature)[:, 0] - np.log(np.exp(rows_TV / temperature).sum(axis=1))
            for rows_TV in (engine_TV, logits_TV)
        )
        return LogprobPairs(rollout_T, trainer_T, np.arange(tokens) // 40, np.arange(tokens // 40))

    of_raw, of_processed = pairs_at(1.0), pairs_at(0.6)
    raw, as_sampled, processed = (
        measure(pairs, replicates=200)[METRIC].value
        for pairs in (of_raw, at_temperature(of_raw, 1.0, 0.6), of_processed)
    )
    assert raw < 0.5 * processed
    assert as_sampled == pytest.approx(processed, rel=0.25)


def test_two_prompts_do_not_tell_which_engine_is_nearer():
    change, because = change_of_distance(k3_of(0.2, 1, prompts=2), k3_of(0.1, 2, prompts=2), unfelt=1e-8)
    assert change is Change.UNKNOWN
    assert "2 prompts" in because


def told(today, after, distance=NEARER, step=""):
    first = judged_as(Layer.SEMANTIC, after.layers[0], "", following=step)
    unsettled = None if all(verdict.passes for verdict in after.layers) else first
    return answer(Move(today=today, after=after, changes=changes_of(today, after, distance)), unsettled)


def test_the_answer_says_what_to_do_after_what_it_is_about():
    cut = side(OFF, UNTESTED, ("filters-not-replayed",))
    assert told(cut, cut, step="set top_p=1") == (
        "The move does not change what the logprobs mean, and the logprobs come nearer to the trainer "
        "(k3 0.0192 -> 0.0025 nats).",
        "Wrong today already: filters-not-replayed.",
        "To do: set top_p=1.",
    )
    other = told(side(OFF, UNTESTED, ("raw-logprobs",)), cut, step="set top_p=1")
    assert other[1:] == ("To do: set top_p=1.", "Wrong today: raw-logprobs.")
    assert told(side(MATCH, OFF), side(MATCH, OFF))[-1] == (
        "Layer 3 (objective) is already a mismatch today: both engines push tokens or sequences out of the clip "
        "range of the objective."
    )
    assert told(side(MATCH), side(MATCH), step="nothing") == (
        "The move keeps what the logprobs mean, and the logprobs come nearer to the trainer "
        "(k3 0.0192 -> 0.0025 nats).",
    )


def test_a_meaning_that_breaks_says_by_how_much_ratios_are_off():
    ratio = measure(pairs_of(0.1, 1), replicates=300)["mean_ratio_minus_one"]
    off = side(OFF, UNTESTED, ("raw-logprobs",), replace(ratio, value=0.161, low=0.144, high=0.176))
    assert told(side(MATCH), off)[0].startswith(
        "The move breaks what the logprobs mean (raw-logprobs, ratios are 16.1 % too high). Apart from that, "
    )
    unclear = replace(off, ratio=replace(ratio, value=0.01, low=-0.1, high=0.2))
    assert "ratios are" not in told(side(MATCH), unclear)[0]


def test_mean_ratios_settle_a_move_whose_one_side_is_too_small_for_a_verdict_of_its_own():
    ratio = measure(pairs_of(0.1, 1), replicates=300)["mean_ratio_minus_one"]
    right, vague, wrong = (
        replace(ratio, value=(low + high) / 2, low=low, high=high)
        for low, high in ((-1e-5, 1e-5), (-0.02, 0.02), (0.2, 0.26))
    )
    raw = side(OFF, UNTESTED, ("raw-logprobs",), wrong)
    assert changes_of(side(OPEN, ratio=right), raw, NEARER)[0].change is Change.BROKEN
    assert changes_of(raw, side(OPEN, ratio=right), NEARER)[0].change is Change.FIXED
    assert changes_of(side(OPEN, ratio=vague), raw, NEARER)[0].change is Change.UNKNOWN
    assert changes_of(side(OPEN, ratio=right), side(OFF, ratio=right), NEARER)[0].change is Change.UNKNOWN


def test_a_move_without_todays_engine_is_not_known():
    assert told(None, side(OFF), step="set x")[0] == (
        "It is not known what the move changes, because today's engine was not measured."
    )


def test_no_sentence_of_an_answer_has_more_than_25_words():
    sides = [None, *(side(verdict, causes=("raw-logprobs",)) for verdict in Verdict)]
    for today in sides:
        for after in sides[1:]:
            for sentence in ". ".join(told(today, after)).split(". "):
                assert len(sentence.split()) <= 25


def exits(today, after, distance=NEARER, fail_for=FailFor.MOVE):
    move = Move(today=today, after=after, changes=changes_of(today, after, distance))
    layers = [judged_as(layer, verdict, "") for layer, verdict in zip(Layer, after.layers, strict=True)]
    return exit_code_of(counted(layers, move, fail_for), unfinished=False, fails=True)


@pytest.mark.parametrize(
    ("today", "after", "distance", "code"),
    [
        (side(OFF, UNTESTED, ("a",)), side(OFF, UNTESTED, ("a",)), NEARER, 0),
        (side(MATCH), side(OFF, UNTESTED, ("a",)), NEARER, 1),
        (side(MATCH), side(MATCH), (Change.FARTHER, ""), 1),
        (side(MATCH), side(MATCH, OFF), NEARER, 1),
        (side(OPEN), side(MATCH), NEARER, 3),
        (side(MATCH), side(MATCH), (Change.UNKNOWN, ""), 3),
    ],
)
def test_a_gate_on_the_move_fails_for_what_gets_worse_and_not_for_what_is_so_today(today, after, distance, code):
    assert exits(today, after, distance) == code


def test_a_gate_on_the_state_fails_for_what_is_so_today_as_well():
    same = side(OFF, UNTESTED, ("a",))
    assert exits(same, same, fail_for=FailFor.STATE) == 1
