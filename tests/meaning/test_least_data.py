"""Every cause says the least data it can be told from, and below it nothing is said of the cause but that."""

from dataclasses import replace

import numpy as np
import pytest
from token_tables import table, with_columns

from rlaudit.causes.attribution.attribute import all_causes, attribute
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.least_data import OF_A_BIAS, LeastData
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.tokens.alignment import alignment_report


@pytest.mark.parametrize("name", sorted(all_causes()))
def test_every_cause_says_how_much_it_takes_and_why(name):
    least = all_causes()[name].least
    assert least.prompts >= 2
    assert least.sequences >= least.prompts
    assert least.tokens >= least.sequences
    assert len(least.because) > 20


def excess(prompts, samples, length):
    """Off at the beginning of all completions, by far."""
    calm = table(prompts=prompts, samples=samples, length=length)
    noise_T = np.random.default_rng(9).standard_normal(calm.tokens)
    apart_T = 0.5 * np.exp(-calm.position_T / 6.0) * -np.expm1(calm.rollout_logprobs_T) * noise_T
    return replace(calm, trainer_logprobs_T=np.minimum(calm.trainer_logprobs_T + apart_T, 0.0))


def judged(batch, **arguments):
    return attribute(token_evidence(batch, floor_k2=5e-5, alignment=alignment_report(batch), **arguments))


@pytest.mark.parametrize(("prompts", "samples", "length"), [(4, 2, 80), (8, 2, 20)])
def test_below_it_a_cause_is_not_tested_and_the_amount_is_said(prompts, samples, length):
    found = judged(excess(prompts, samples, length))
    reasons = {one.name: one.reason for one in found.not_tested}
    assert "bos" not in found.names
    assert "are needed" in reasons["bos"]


def test_one_sequence_shows_nothing_however_long_it_is():
    assert judged(excess(1, 1, 2000)).names == frozenset()


def test_above_it_the_same_cause_is_named():
    batch = excess(30, 2, 40)
    # No prefix was cached: nothing else fits.
    assert "bos" in judged(with_columns(batch, cached_tokens=np.zeros(batch.tokens))).names


def test_what_lacks_is_counted_in_prompts_sequences_and_tokens():
    evidence = token_evidence(table(prompts=20, samples=2, length=10))
    assert OF_A_BIAS.lacking(evidence) is None
    for field, there in (("prompts", 20), ("sequences", 40), ("tokens", 400)):
        least = LeastData(**{"prompts": 1, "sequences": 1, "tokens": 1, "because": "so", field: there + 1})
        assert least.lacking(evidence) == f"{there + 1} {field} are needed, and these data have {there} (so)"


def shifted_sequences(count):
    batch = table(prompts=20)
    trainer_T = batch.trainer_logprobs_T.copy()
    for sequence in range(count):
        own = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
        trainer_T[own] = np.roll(trainer_T[own], 1)
    return replace(batch, trainer_logprobs_T=trainer_T)


def test_one_shifted_sequence_of_many_neither_names_a_cause_nor_is_passed_over():
    one, two = judged(shifted_sequences(1)), judged(shifted_sequences(2))
    assert ("off-by-one" in one.names, "off-by-one" in one.leaning) == (False, True)
    assert ("off-by-one" in two.names, "off-by-one" in two.leaning) == (True, False)


def test_a_filter_is_blamed_only_where_one_was_asked_for_or_shows():
    calm = table(prompts=40)
    kept_T = np.random.default_rng(2).uniform(0.7, 1.0, calm.tokens)
    cut = replace(calm, trainer_logprobs_T=calm.rollout_logprobs_T + np.log(kept_T))
    assert judged(cut, sampling=Semantics(top_p=0.7)).names == {"filters-not-replayed"}
    assert "filters-not-replayed" not in judged(cut).names
    assert "filters-not-replayed" not in judged(cut, sampling=Semantics(top_p=0.7), trainer=Semantics(top_p=0.7)).names
    assert "filters-not-replayed" not in judged(cut, sampling=Semantics(top_p=0.95)).names
    listed = replace(
        cut,
        rollout_top_ids_TK=np.tile([1, 2], (cut.tokens, 1)),
        rollout_top_logprobs_TK=np.tile([-0.1, -np.inf], (cut.tokens, 1)),
    )
    assert "filters-not-replayed" in judged(listed).names


def test_without_any_difference_nothing_is_named_and_nothing_crashes():
    calm = table(prompts=20)
    versions = {"rollout_version": calm.sequence_T % 3, "trainer_version": np.full(calm.tokens, 3)}
    for logprobs_T in (calm.rollout_logprobs_T, np.full(calm.tokens, -1.5), np.zeros(calm.tokens)):
        for apart in (0.0, -0.3):
            same = replace(calm, rollout_logprobs_T=logprobs_T, trainer_logprobs_T=logprobs_T + apart)
            assert judged(with_columns(same, **versions)).names == frozenset()
