"""Samples of one prompt beside exact scores: what contradicts them is said."""

import numpy as np
import pytest
from worlds.sibling_tree import at, tree

from rlaudit.meaning.from_scores import contradicted
from rlaudit.meaning.from_siblings import Side, siblings_of
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.sibling_words import beside_scores

HONEST = at()


def found(sampler, report, trainer, prompts=512, samples=16):
    batch = tree(
        np.random.default_rng(1),
        prompts,
        samples,
        sampler=sampler,
        report=report,
        trainer=trainer,
        sharpness=(1.0, 9.0),
    )
    return siblings_of((batch, batch.prompt_S))


AT_07 = at(0.7)


@pytest.mark.parametrize(
    ("kind", "worlds", "sides"),
    [
        (Kind.AGREE, (HONEST, HONEST, HONEST), {}),
        (Kind.AGREE, (AT_07, HONEST, AT_07), {Side.REPORT: True}),
        (Kind.RAW_REPORT, (AT_07, HONEST, AT_07), {}),
        (Kind.RAW_REPORT, (HONEST, HONEST, HONEST), {Side.REPORT: False}),
        (Kind.TRAINER, (HONEST, HONEST, AT_07), {}),
        (Kind.HIDDEN_SAMPLING, (AT_07, HONEST, HONEST), {}),
        (Kind.HIDDEN_SAMPLING, (HONEST, HONEST, HONEST), {Side.REPORT: False, Side.TRAINER: False}),
        (Kind.UNTOLD, (AT_07, HONEST, HONEST), {}),
    ],
)
def test_what_both_are_sure_of_and_not_of_one_mind_about_is_a_contradiction(kind, worlds, sides):
    assert contradicted(kind, found(*worlds)) == sides


def test_few_samples_contradict_nobody():
    assert not contradicted(Kind.RAW_REPORT, found(HONEST, HONEST, HONEST, prompts=40, samples=2))


def test_a_contradiction_is_said_beside_the_figures_of_both_sides():
    lines = beside_scores(Kind.AGREE, found(AT_07, HONEST, AT_07))
    assert [line.split(":")[0] for line in lines] == [
        "samples of one prompt against what is reported",
        "samples of one prompt against the trainer",
        "contradiction",
    ]
    assert beside_scores(Kind.AGREE, None) == ()


def test_samples_that_leave_everything_open_say_nothing_beside_the_scores():
    assert beside_scores(Kind.AGREE, found(HONEST, HONEST, HONEST, prompts=40, samples=2)) == ()
