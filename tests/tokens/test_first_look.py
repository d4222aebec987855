"""What a first look at a log finds: columns and tokens that are not what they claim, and no honest ones like them."""

from dataclasses import replace

import numpy as np
import pytest
from drawn_tokens import drawn, without_ends
from logged_tokens import logged
from token_tables import table, with_columns, with_trainer

from rlaudit.tokens.first_look import first_look

END = 499
NUMBERS = (1.0, np.nan, -1.0, -100.0, -9999.0, 0.0)
SIDES = {"rollout": "rollout_logprobs_T", "trainer": "trainer_logprobs_T"}


def ended(seed=0, samples=4, length=40, **wanted):
    """A table whose completions end after 10 to `length` tokens with an end token."""
    whole = table(seed=seed, samples=samples, length=length, **wanted)
    ends_S = np.random.default_rng(seed).integers(10, length + 1, whole.sequences)
    kept_T = whole.position_T < ends_S[whole.sequence_T]
    ids_T = whole.token_id_T % END
    ids_T[whole.position_T == ends_S[whole.sequence_T] - 1] = END
    return replace(whole, token_id_T=ids_T)._of(kept_T, slice(None), whole.sequence_T[kept_T])


def last_of(batch):
    return np.isin(np.arange(batch.tokens), batch.offsets[1:] - 1)


def tool_of(batch):
    """Six tokens of every second sequence."""
    return (batch.sequence_T % 2 == 0) & (batch.position_T >= 2) & (batch.position_T < 8)


def left_out(batch):
    found = first_look([batch])
    return found, ~found.applied(batch).counts_T


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("places", [last_of, tool_of])
def test_only_the_tokens_whose_logprob_was_put_in_are_left_out(side, number, places):
    honest = ended(noise=0.02)
    marked_T = places(honest)
    column_T = np.where(marked_T, number, getattr(honest, SIDES[side]))
    found, left_out_T = left_out(replace(honest, **{SIDES[side]: column_T}))
    assert (left_out_T == marked_T).mean() > 0.999
    said = [*found.placed, *found.missing.values()]
    assert len(said) == 1
    assert ("always the last token, one token id (499)" if places is last_of else "in stretches, of 6 tokens") in said[
        0
    ]


def test_end_tokens_that_the_trainer_left_out_are_not_called_undrawn():
    honest = ended()
    said = first_look([with_trainer(honest, np.where(last_of(honest), 0.0, honest.trainer_logprobs_T))]).placed
    assert "the trainer left the end token out" in said[0]
    assert "The policy sampled the end token" in said[0]


@pytest.mark.parametrize("digits", [np.float16, 2, 3])
def test_sure_tokens_that_are_rounded_to_a_logprob_of_zero_stay(digits):
    honest = ended(peaked=0.9)
    for field in SIDES.values():
        logprobs_T = getattr(honest, field)
        rounded_T = logprobs_T.astype(digits) if digits is np.float16 else logprobs_T.round(digits)
        honest = replace(honest, **{field: np.where(logprobs_T > -0.005, 0.0, rounded_T.astype(float))})
    assert not first_look([honest]).findings


def test_tokens_that_a_filter_keeps_alone_stay():
    """Processed logprobs are 0 where one token is kept; the trainer, without the filter, gives it less."""
    honest = ended(peaked=0.8, noise=0.0)
    alone_T = honest.trainer_logprobs_T > -0.5
    found = first_look([replace(honest, rollout_logprobs_T=np.where(alone_T, 0.0, honest.rollout_logprobs_T + 0.1))])
    assert not found.placed


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_missing_logprobs_without_a_pattern_are_left_to_the_sequences(share):
    honest = ended()
    missing_T = np.random.default_rng(0).random(honest.tokens) < share
    found = first_look([replace(honest, rollout_logprobs_T=np.where(missing_T, np.nan, honest.rollout_logprobs_T))])
    assert not found.missing


def test_sequences_that_no_trainer_scored_are_no_missing_logprobs():
    honest = ended()
    unscored_T = honest.sequence_T % 3 == 0
    found, left_out_T = left_out(with_trainer(honest, np.where(unscored_T, np.nan, honest.trainer_logprobs_T)))
    assert not found.findings
    assert not left_out_T.any()


RNG = np.random.default_rng(3)
ENTROPIES = {
    "it is 0 in all": np.zeros_like,
    "in bits": lambda entropy_T: entropy_T / np.log(2),
    "below the least": lambda entropy_T: entropy_T / np.log(10),
    "above the most": lambda entropy_T: np.full_like(entropy_T, 2.0),
    "other rows": RNG.permutation,
}


@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("words", ENTROPIES)
def test_entropies_that_do_not_fit_are_not_used(words, temperature):
    honest = logged(temperature=temperature, noise=0.01, length=60)
    entropy_T = ENTROPIES[words](honest.token_columns["trainer_entropy"])
    found = first_look([with_columns(honest, trainer_entropy=entropy_T)])
    assert words in found.unused["trainer_entropy"]


def test_entropies_in_bits_show_by_their_bound_in_few_tokens():
    """Two tokens with all the mass have the least entropy that there is, in bits as in nats."""
    chance = np.random.default_rng(2)
    few = logged(prompts=8, length=20)
    p_T = chance.choice([0.5, 0.8, 0.95], few.tokens)
    trainer_T = np.log(np.where(chance.random(few.tokens) < p_T, p_T, 1.0 - p_T))
    entropy_T = -p_T * np.log(p_T) - (1.0 - p_T) * np.log(1.0 - p_T)
    entropy_T = np.where(chance.random(few.tokens) < 0.2, entropy_T, 1.3 * entropy_T)
    for unit, used in ((1.0, True), (np.log(2), False)):
        found = first_look([with_columns(with_trainer(few, trainer_T), trainer_entropy=entropy_T / unit)])
        assert ("trainer_entropy" not in found.unused) == used


def test_entropies_of_logits_before_the_temperature_are_not_used():
    before = logged(temperature=0.5, trainer_at=1.0).token_columns["trainer_entropy"]
    found = first_look([with_columns(logged(temperature=0.5, noise=0.01), trainer_entropy=before)])
    assert "before the temperature" in found.unused["trainer_entropy"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "wanted", [{}, {"temperature": 0.7}, {"top_p": 0.9}, {"trainer_at": 0.8}, {"temperature": 1.2}]
)
@pytest.mark.parametrize("digits", [None, 2])
def test_entropies_of_the_trainers_own_distribution_are_used(seed, wanted, digits):
    """Even where tokens were drawn from another one: that is what they are there to show."""
    log = logged(seed=seed, noise=0.02, **wanted)
    if digits is not None:
        rounded_T = log.token_columns["trainer_entropy"].round(digits)
        log = with_trainer(with_columns(log, trainer_entropy=rounded_T), log.trainer_logprobs_T.round(digits))
    assert "trainer_entropy" not in first_look([log]).unused


def test_a_copy_of_the_engines_logprobs_is_no_trainers():
    honest = table()
    found = first_look([with_trainer(honest, honest.rollout_logprobs_T.copy())])
    assert "copy of rollout_logprob" in found.unused["trainer_logprob"]
    assert np.isnan(found.applied(honest).trainer_logprobs_T).all()
    nearly_T = np.nextafter(honest.rollout_logprobs_T, -np.inf)
    assert not first_look([with_trainer(honest, nearly_T)]).findings


def probabilities(logprobs_T):
    return np.exp(logprobs_T)


def softened(logprobs_T):
    return np.log(np.exp(logprobs_T) + 1e-3)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("turned", "words"), [(probabilities, "probabilities"), (np.negative, "-log p"), (softened, "log(p + 0.001)")]
)
def test_columns_that_hold_another_number_are_called_by_it(side, turned, words):
    honest = table()
    found = first_look([replace(honest, **{SIDES[side]: turned(getattr(honest, SIDES[side]))})])
    assert [words in because for because in found.said] == [True]


@pytest.mark.parametrize("forced", [(7,), (7, 9, 11), (lambda prompt: prompt % 30 + 1,) * 2])
def test_forced_first_words_are_left_out(forced):
    found, left_out_T = left_out(drawn(forced=forced))
    batch = drawn(forced=forced)
    assert (left_out_T == (batch.position_T < len(forced))).all()
    assert "no sampler drew them" in found.said[0]


@pytest.mark.parametrize("seed", range(6))
def test_first_words_that_are_likely_are_drawn(seed):
    """All prompts begin with one word that has 95 %: nearly all samples have it."""
    batch = drawn(seed=seed, prompts=48)
    rng = np.random.default_rng(seed)
    likely_S = rng.random(batch.sequences) < 0.95
    first_T = batch.position_T == 0
    ids_T, logprobs_T = batch.token_id_T.copy(), batch.rollout_logprobs_T.copy()
    ids_T[first_T] = np.where(likely_S, 3, 4)
    logprobs_T[first_T] = np.log(np.where(likely_S, 0.95, 0.05))
    found = first_look([replace(batch, token_id_T=ids_T, rollout_logprobs_T=logprobs_T)])
    assert not any("no sampler drew" in because for because in found.said)


def test_completions_without_their_end_are_told_from_those_with_it():
    whole = drawn(ends=0.1, length=30, prompts=12)
    assert not first_look([whole]).ends_missing
    assert first_look([without_ends(whole)]).ends_missing == pytest.approx(0.1, abs=0.03)


def test_completions_of_one_length_were_cut_and_lack_no_end():
    assert not first_look([drawn(length=8)]).findings


def test_what_is_found_in_the_first_sequences_holds_for_the_whole_log():
    """A chunk in which every last token happens to be unmarked decides nothing for itself."""
    honest = ended()
    marked = with_trainer(honest, np.where(last_of(honest), 0.0, honest.trainer_logprobs_T))
    found = first_look([marked, honest])
    assert (~found.applied(marked).counts_T).sum() == marked.sequences
    assert found.applied(honest).counts_T.all()


def test_last_tokens_that_one_side_scored_differently_are_left_out():
    honest = table()
    found, left_out_T = left_out(with_trainer(honest, honest.trainer_logprobs_T - 8.0 * last_of(honest)))
    assert (left_out_T == last_of(honest)).all()
    assert "only the last token is far off" in found.placed[0]


@pytest.mark.parametrize("number", [1.0, 0.0, -100.0])
@pytest.mark.parametrize("places", [last_of, tool_of])
def test_numbers_that_the_loss_mask_leaves_out_already_are_nothing_to_say(number, places):
    honest = ended()
    column_T = np.where(places(honest), number, honest.rollout_logprobs_T)
    masked = with_columns(honest, loss_mask=1 - places(honest).astype(int))
    found = first_look([replace(masked, rollout_logprobs_T=column_T)])
    assert not found.unused
    assert not found.placed


def test_a_mask_by_ratio_is_not_used_and_one_of_tools_is():
    honest = table(noise=0.1, peaked=0.2)
    apart_T = np.abs(honest.trainer_logprobs_T - honest.rollout_logprobs_T)
    by_ratio = with_columns(honest, loss_mask=(apart_T < 0.2).astype(int))
    assert "mask by ratio" in first_look([by_ratio]).unused["loss_mask"]
    of_tools = with_columns(honest, loss_mask=1 - tool_of(honest).astype(int))
    tools_T = np.where(tool_of(honest), 0.0, honest.rollout_logprobs_T)
    assert not first_look([replace(of_tools, rollout_logprobs_T=tools_T)]).unused


@pytest.mark.parametrize("lag", [1, 4])
def test_last_tokens_of_a_shift_are_not_the_only_ones_that_are_far_off(lag):
    honest = table(peaked=0.7, length=20)
    last_T = np.where(last_of(honest), -5.0, honest.trainer_logprobs_T)
    assert not first_look([with_trainer(honest, np.roll(last_T, -lag))]).placed


def test_a_number_that_few_of_many_far_end_tokens_have_was_not_put_in():
    honest = ended(samples=8, noise=0.02)
    ends_T = last_of(honest)
    apart_T = np.where(ends_T, -3.0 + np.random.default_rng(0).normal(0, 0.5, honest.tokens), 0.0)
    trainer_T = honest.trainer_logprobs_T + apart_T
    by_chance = np.flatnonzero(ends_T)[::10]
    trainer_T[by_chance] = np.round(trainer_T[by_chance].mean())
    assert not any("trainer_logprob -" in line for line in first_look([with_trainer(honest, trainer_T)]).placed)
