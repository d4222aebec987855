"""What would have been seen by samples of one prompt, and what could not have been, by name."""

from dataclasses import replace

import numpy as np
import pytest
from worlds.sibling_tree import at, tree

from rlaudit.meaning.candidates import RAW
from rlaudit.meaning.from_logs import meaning_of_rollouts
from rlaudit.meaning.from_siblings import Deviation, Siblings, prompts_needed, siblings_of, smallest_of
from rlaudit.meaning.limits import mass_limit
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.sibling_words import NO_SUCH_FIGURE, believed_of_siblings, what_would_tell
from rlaudit.meaning.siblings import Agreement
from rlaudit.statistics.estimate import Estimate


def estimate(low, high):
    return Estimate((low + high) / 2, low, high, 0.0)


CLOSE = Agreement(
    excess=estimate(-0.01, 0.005),
    step=estimate(-0.02, 0.03),
    odds=estimate(-0.1, 0.1),
    cut=estimate(-0.02, 0.01),
    flat=0.002,
    cut_steps_G=np.array([0.1, 0.4]),
    cut_masses_G=np.array([0.02, 0.1]),
    reach=0.99,
    floor=0.01,
    rank=60,
    draws=9000,
    prompts=512,
)


def test_the_smallest_deviation_is_that_of_the_side_that_shows_least():
    other = replace(CLOSE, step=estimate(-0.04, 0.01), cut=estimate(0.0, 0.018), reach=0.985, floor=0.015, rank=55)
    found = smallest_of([CLOSE, other])
    assert (found.temperature, found.mass) == (0.04, pytest.approx(0.02))
    assert (found.top_p, found.min_p, found.top_k) == (0.985, 0.015, 55)
    # What no amount of such data tells.
    assert found.unseen == (Deviation.PENALTY,)


@pytest.mark.parametrize(
    ("weaker", "unseen"),
    [
        ({"step": estimate(-0.06, 0.0)}, Deviation.TEMPERATURE),
        ({"step": estimate(-0.048, 0.0)}, Deviation.TEMPERATURE),
        ({"reach": 0.97}, Deviation.TOP_P),
        ({"floor": 0.03}, Deviation.MIN_P),
        ({"rank": 50}, Deviation.TOP_K),
    ],
)
def test_what_may_have_been_in_force_is_said_by_name(weaker, unseen):
    side = replace(CLOSE, **weaker)
    assert smallest_of([CLOSE, side]).unseen == (unseen, Deviation.PENALTY)
    said = believed_of_siblings(Siblings(side, CLOSE, ()))
    assert f"Not seen: {unseen.value}" in said
    assert (NO_SUCH_FIGURE[Deviation.TOP_K] in said) == (unseen is Deviation.TOP_K)


@pytest.mark.parametrize(("reported", "alike"), [((0.12, 0.3), True), ((0.0, 0.09), False), ((0.21, 0.3), False)])
def test_tokens_lie_as_far_from_both_sides_if_what_shows_of_them_overlaps(reported, alike):
    surely = replace(estimate(0.1, 0.2), ln_p=-50.0, left_K=np.full(8, 0.15), ln_p_left_K=np.full(8, -50.0))
    trainer = replace(CLOSE, step=surely)
    assert Siblings(replace(CLOSE, step=estimate(*reported)), trainer, ()).alike is alike


def test_what_lies_where_siblings_hold_too_little_may_have_been_cut_and_more_samples_would_tell():
    flat = replace(CLOSE, flat=0.03)
    assert smallest_of([flat]).mass == pytest.approx(0.04)
    assert not Siblings(flat, flat, ()).same(flat)
    assert "more samples of each prompt" in what_would_tell(Siblings(flat, flat, ()))


def test_the_wider_of_the_two_intervals_says_how_many_prompts_would_do():
    wide = replace(CLOSE, cut=estimate(-0.036, 0.036))
    assert prompts_needed(CLOSE) == 512
    assert prompts_needed(wide) == 2048
    assert "about 2048 prompts" in what_would_tell(Siblings(wide, wide, ()))


def test_where_too_few_prompts_bear_witness_no_filter_is_said_to_be_seen_by_its_tokens():
    silent = replace(CLOSE, reach=float("-inf"), floor=float("inf"), rank=0)
    said = believed_of_siblings(Siblings(silent, silent, ()))
    assert "any" not in said
    assert "Not seen: top-p 0.98, min-p 0.02, top-k 50" in said


def test_that_no_top_p_was_in_force_rules_out_no_filter_that_cuts_elsewhere():
    # As a top-k of 10 among 256 tokens is seen by 512 prompts with 16 samples each.
    cut = replace(CLOSE, cut=estimate(0.016, 0.024), rank=9)
    siblings = Siblings(cut, CLOSE, ())
    assert siblings.same(CLOSE)
    assert not siblings.same(cut)


@pytest.mark.parametrize(("prompts", "samples"), [(64, 8), (32, 16)])
def test_a_filter_shows_where_it_cuts_half_as_much_again_as_the_limit_and_not_where_it_cuts_half(prompts, samples):
    def found(seed, sampler, report):
        batch = tree(np.random.default_rng(seed), prompts, samples, sampler=sampler, report=report)
        return batch, siblings_of((batch, batch.prompt_S))

    limit = mass_limit(found(1, at(), at())[1])
    told = {}
    for top_p in (0.99, 0.97, 0.8, 0.7):
        raw, siblings = found(2, at(top_p=top_p), at())
        processed, _ = found(2, at(top_p=top_p), at(top_p=top_p))
        cut = 1.0 - np.exp(raw.rollout_logprobs_T - processed.rollout_logprobs_T).mean()
        told[cut / limit] = siblings.off(siblings.report)
    above, below = [told[times] for times in told if times > 1.5], [told[times] for times in told if times < 0.5]
    assert above and all(above)
    assert below and not any(below)


@pytest.mark.parametrize(("cut", "kind"), [(0.1, Kind.NOTHING), (0.6, Kind.UNTOLD)])
def test_where_no_filter_would_get_a_verdict_nothing_is_found_if_its_interval_leaves_little_mass(cut, kind):
    unsure = replace(CLOSE, step=estimate(-0.1, 0.1), cut=estimate(-0.02, cut), cut_steps_G=np.array([1e-3, 2e-3]))
    siblings = Siblings(unsure, None, ())
    assert mass_limit(siblings) == 1.0
    assert meaning_of_rollouts(siblings, tokens=9000, sequences=512, requested=RAW, trainer=RAW).kind is kind
