"""What rounding does to a healthy engine is no mismatch of its path, and layer 2's sentence says so."""

import re
from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from logged_tokens import logged
from token_tables import with_trainer

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW
from rlaudit.statistics.measurement.metric import ObjectiveSettings

STATED = CompareSettings(replicates=200)
SETTINGS = replace(STATED, objective=ObjectiveSettings(stated=False))
# Standard deviations of a logit that make a k3 of .002 and of .006.
ORDINARY, LOUD = 0.08, 0.14


def judged(noise, settings=SETTINGS, spoil=None):
    batch = logged(prompts=64, noise=noise)
    return compare([batch if spoil is None else spoil(batch)], RAW, RAW, settings)


def a_tenth_far_off(batch):
    """One sequence in ten is scored by another engine, the others agree."""
    apart_T = np.where(batch.sequence_T % 10 == 0, 0.3 * np.random.default_rng(0).normal(size=batch.tokens), 0.0)
    trainer_T = np.minimum(batch.rollout_logprobs_T + apart_T * -np.expm1(batch.rollout_logprobs_T), 0.0)
    return replace(batch, trainer_logprobs_T=trainer_T)


def test_an_ordinary_distance_finds_nothing_although_the_default_clip_ranges_feel_it():
    found = judged(ORDINARY)
    assert [layer.verdict for layer in found.layers[1:]] == [Verdict.NOTHING_FOUND] * 2
    assert found.layers[1].cause is None and "Rounding of this size moves" in found.layers[1].because
    assert found.limits.k3 == pytest.approx(4e-3)


@pytest.mark.parametrize(
    ("noise", "settings", "spoil", "verdict", "words"),
    [
        (LOUD, SETTINGS, None, Verdict.INCONCLUSIVE, "A fault without a pattern would look the same"),
        (ORDINARY, STATED, None, Verdict.MISMATCH, "he clip range that you stated"),
        (0.0, SETTINGS, a_tenth_far_off, Verdict.MISMATCH, "few tokens make most of the mismatch"),
    ],
    ids=["more than ordinary", "stated clip range", "few sequences"],
)
def test_a_distance_that_is_more_than_that_is_not_let_pass_and_says_why(noise, settings, spoil, verdict, words):
    path = judged(noise, settings, spoil).layers[1]
    assert path.verdict is verdict
    assert words in path.because


def test_what_is_open_between_rounding_and_a_fault_says_why_and_how_many_prompts_settle_it():
    def few_far_off(batch):
        apart_T = np.where(batch.sequence_T % 50 == 0, 0.3, 0.0) * np.random.default_rng(0).normal(size=batch.tokens)
        trainer_T = np.minimum(batch.rollout_logprobs_T + apart_T * -np.expm1(batch.rollout_logprobs_T), 0.0)
        return replace(batch, trainer_logprobs_T=trainer_T)

    path = judged(0.0, SETTINGS, few_far_off).layers[1]
    assert path.verdict is Verdict.INCONCLUSIVE
    assert "few tokens make most of the mismatch" in path.because
    assert re.search(r"more tokens: about \d+ prompts like these", path.next)


def loud_sequences(batch):
    """One sequence in eight is so loud that the interval reaches over what is ordinary, and not over what is usual."""
    apart_T = np.where(batch.sequence_T % 8 < 1, 0.2, 0.08) * np.random.default_rng(0).normal(size=batch.tokens)
    trainer_T = np.minimum(batch.rollout_logprobs_T + apart_T * -np.expm1(batch.rollout_logprobs_T), 0.0)
    return replace(batch, trainer_logprobs_T=trainer_T)


def test_a_distance_is_ordinary_if_its_interval_stays_within_what_is_usual():
    found = judged(0.0, spoil=loud_sequences)
    k3 = found.evidence.measurements["k3"]
    assert k3.value < 4e-3 < k3.high < 1e-2
    assert found.layers[1].verdict is Verdict.NOTHING_FOUND


def two_far_tokens(batch):
    trainer_T = batch.rollout_logprobs_T + 1e-6
    trainer_T[[5, 2000]] -= 0.5
    return with_trainer(batch, np.minimum(trainer_T, 0.0))


def test_shares_of_which_none_is_noticed_and_that_are_small_let_the_path_pass():
    path = judged(0.0, spoil=two_far_tokens).layers[1]
    assert path.verdict is Verdict.NOTHING_FOUND
    assert "would show here" in path.because
