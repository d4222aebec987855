"""Whole groups of samples, whichever parts of a log they lie in."""

from dataclasses import replace

import numpy as np
from worlds.sibling_tree import at, tree

from rlaudit.tokens.sibling_groups import SiblingGroups


def parts_of(batch, order, size):
    for first in range(0, len(order), size):
        yield batch.take(order[first : first + size])


def held(batch, order, tokens, size=7):
    groups = SiblingGroups(tokens)
    for part in parts_of(batch, order, size):
        groups.add(part)
    whole, group_S = groups.groups()
    return groups, whole, group_S


def test_the_samples_of_a_held_group_are_all_held_wherever_they_lie():
    batch = tree(np.random.default_rng(1), 200, 4, 8, sampler=at(), report=at())
    shuffled = np.random.default_rng(2).permutation(batch.sequences)
    groups, whole, group_S = held(batch, shuffled, batch.tokens // 5)
    assert groups.tokens <= batch.tokens // 5
    assert (np.bincount(group_S)[np.unique(group_S)] == 4).all()
    assert {len(set(whole.prompt_S[group_S == one])) for one in np.unique(group_S)} == {1}


def test_which_groups_are_held_does_not_depend_on_the_order():
    batch = tree(np.random.default_rng(1), 200, 4, 8, sampler=at(), report=at())
    rng = np.random.default_rng(3)
    first, second = (set(held(batch, rng.permutation(800), 900)[1].prompt_S) for _ in range(2))
    assert first == second


def test_samples_of_another_step_are_another_group():
    batch = tree(np.random.default_rng(4), 10, 4, 8, sampler=at(), report=at())
    steps_S = np.tile([0.0, 0.0, 1.0, 1.0], 10)
    stepped = replace(batch, sequence_columns={"step": steps_S})
    _, _, group_S = held(stepped, np.arange(40), 10**6)
    assert len(set(group_S)) == 20


def test_lonely_samples_are_no_group():
    batch = tree(np.random.default_rng(5), 10, 1, 8, sampler=at(), report=at())
    groups = SiblingGroups()
    groups.add(batch)
    assert groups.groups() is None


def test_a_sample_without_token_ids_takes_no_other_with_it():
    batch = tree(np.random.default_rng(6), 10, 3, 8, sampler=at(), report=at())
    ids_T = np.where(batch.sequence_T == 4, -1, batch.token_id_T)
    _, whole, group_S = held(replace(batch, token_id_T=ids_T), np.arange(30), 10**6)
    assert whole.sequences == 29
    assert sorted(np.unique(group_S, return_counts=True)[1]) == [2, *[3] * 9]
