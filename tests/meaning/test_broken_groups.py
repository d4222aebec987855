"""Samples that are no siblings are recognised, and those that are, are not."""

from dataclasses import replace

import numpy as np
import pytest
from known_contexts import contexts_of, grow, logits_of, penalised
from worlds.sibling_tree import at, tree

from rlaudit.meaning.broken_groups import Broken, broken
from rlaudit.meaning.from_siblings import siblings_of
from rlaudit.meaning.siblings import shared_draws


def told(batch):
    return broken(shared_draws(batch, batch.prompt_S), batch, batch.prompt_S)


@pytest.mark.parametrize("temperature", [0.5, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("sharpness", [(0.0, 2.0), (1.0, 6.0), (4.0, 20.0)])
def test_siblings_are_whole_whatever_they_were_sampled_at(temperature, sharpness):
    rng = np.random.default_rng(1)
    assert told(tree(rng, 64, 8, 64, sampler=at(temperature), report=at(), sharpness=sharpness, noise=0.05)) == ()


def test_copies_are_told():
    batch = tree(np.random.default_rng(2), 64, 2, 64, sampler=at(), report=at(), sharpness=(1.0, 3.0))
    assert told(batch) == ()
    rng = np.random.default_rng(3)
    lengths = 32
    tokens_ST = np.repeat(rng.integers(0, 256, (64, lengths)), 2, axis=0)
    copies = replace(
        batch,
        rollout_logprobs_T=np.full(128 * lengths, -2.0),
        trainer_logprobs_T=np.full(128 * lengths, -2.0),
        token_id_T=tokens_ST.ravel(),
        position_T=np.tile(np.arange(lengths), 128),
        sequence_T=np.repeat(np.arange(128), lengths),
    )
    assert told(copies) == (Broken.COPIES,)


@pytest.mark.parametrize("repetition", [1.1, 1.5, 2.0])
def test_a_hidden_penalty_is_not_taken_for_copies(repetition):
    rng = np.random.default_rng(8)
    known = contexts_of(logits_of(rng, 512, 256, (1.0, 9.0)), penalised(repetition), at())
    assert told(grow(rng, known, 128, 8, 64)[0]) == ()


def test_other_prompts_under_one_name_are_told():
    rng = np.random.default_rng(4)
    batch = tree(rng, 64, 8, 16, sampler=at(), report=at())
    off_S = rng.normal(0.0, 1.0, batch.sequences)
    other = replace(batch, rollout_logprobs_T=np.minimum(batch.rollout_logprobs_T + off_S[batch.sequence_T], 0.0))
    assert told(other) == (Broken.OTHER_CONTEXTS,)


def test_tokens_of_no_model_are_no_samples_of_one_prompt():
    rng = np.random.default_rng(7)
    batch = tree(rng, 64, 8, 16, sampler=at(), report=at())
    scrambled = replace(batch, token_id_T=rng.integers(0, 50_000, batch.tokens))
    assert set(told(scrambled)) & {Broken.OTHER_CONTEXTS, Broken.UNSEEN_CONTEXTS}


def test_what_is_seen_to_differ_is_not_called_unseen():
    """Two samples of each prompt share no token, and what they report in one context is still more than there is."""
    rng = np.random.default_rng(7)
    batch = tree(rng, 64, 2, 16, sampler=at(), report=at())
    scrambled = replace(batch, token_id_T=rng.integers(0, 50_000, batch.tokens))
    assert told(scrambled) == (Broken.OTHER_CONTEXTS,)


def test_groups_chosen_by_their_outcome_are_told():
    batch = tree(np.random.default_rng(5), 64, 8, 16, sampler=at(), report=at())
    chosen_S = np.tile([0.0, 1.0] + [0.0] * 6, 64)
    anyone_S = np.where(batch.prompt_S % 5 == 0, 1.0, chosen_S)
    assert told(replace(batch, sequence_columns={"reward": chosen_S})) == (Broken.CHOSEN,)
    assert told(replace(batch, sequence_columns={"reward": anyone_S})) == ()
    assert told(replace(batch, sequence_columns={"reward": np.random.default_rng(6).normal(size=512)})) == ()


HONEST = {"sampler": at(), "report": at(), "sharpness": (1.0, 9.0), "noise": 1e-3}


def test_strangers_in_one_prompt_of_five_are_told_as_well():
    assert told(tree(np.random.default_rng(8), 256, 16, 64, **HONEST)) == ()
    assert told(tree(np.random.default_rng(8), 256, 16, 64, **HONEST, strangers=0.2)) == (Broken.DOUBTFUL_CONTEXTS,)


@pytest.mark.parametrize("length", [16, 24, 64])
def test_a_few_prompts_that_hold_copies_are_left_out_and_show_nothing(length):
    batch = tree(np.random.default_rng(8), 256, 16, length, **HONEST, copied=0.2)
    found = siblings_of((batch, batch.prompt_S))
    assert Broken.COPIES in found.broken or found.left_out > 0
    assert not found.off_a_side
