"""Policy update and backend mismatch are taken apart, and a correction is recommended only over clean layers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rlaudit.diagnosis.objective_split import BACKEND, BOTH, UNDECIDED, UPDATE, objective_split, recommended
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.text.plain import plain
from rlaudit.tokens.token_batch import TokenBatch

MATCH = (Verdict.MATCH, Verdict.MATCH)


def rollouts(backend=0.01, update=0.05, seed=0, outliers=0.0, drift=0.0, prompts=40, length=50):
    rng = np.random.default_rng(seed)
    tokens = prompts * length
    rollout_T = -rng.exponential(1.5, tokens) - 2.0
    sequence_T = np.repeat(np.arange(prompts), length)
    old_T = rollout_T + backend * rng.standard_normal(tokens) + drift * rng.standard_normal(prompts)[sequence_T]
    far_T = rng.random(tokens) < outliers
    old_T[far_T] += rng.choice([-2.0, 1.2], far_T.sum())
    return TokenBatch(
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=np.minimum(old_T + update * rng.standard_normal(tokens), 0.0),
        token_id_T=np.zeros(tokens, dtype=np.int64),
        position_T=np.tile(np.arange(length), prompts),
        sequence_T=sequence_T,
        prompt_S=np.arange(prompts),
        prompt_names_S=np.arange(prompts),
        sample_names_S=np.zeros(prompts, dtype=np.int64),
        token_columns={"old_logprob": old_T, "advantage": np.where(sequence_T % 2, 1.0, -1.0)},
    )


def test_the_ratio_is_the_product_of_its_factors():
    found = objective_split(rollouts(backend=0.03, update=0.04))
    assert found.factors[UPDATE].k2 == pytest.approx(0.5 * 0.04**2, rel=0.1)
    assert found.factors[BACKEND].k2 == pytest.approx(0.5 * 0.03**2, rel=0.1)
    assert found.factors[BOTH].k2 == pytest.approx(0.5 * 0.05**2, rel=0.1)
    assert found.backend_share == pytest.approx(9 / 25, abs=0.05)
    assert found.update_share == pytest.approx(16 / 25, abs=0.05)


def test_clip_fractions_are_at_the_users_epsilons_with_intervals():
    batch = rollouts(update=0.1)
    wide = objective_split(batch).factors[UPDATE].clipped["ppo"]
    narrow = objective_split(batch, settings=ObjectiveSettings(ppo_epsilon_low=0.1, ppo_epsilon_high=0.1))
    narrow = narrow.factors[UPDATE].clipped["ppo"]
    assert wide.low <= wide.value <= wide.high
    assert narrow.value == pytest.approx(0.32, abs=0.04)
    assert wide.value == pytest.approx(0.05, abs=0.02)


def test_a_clip_binds_only_where_the_advantage_agrees():
    found = objective_split(rollouts(update=0.2)).factors[UPDATE]
    assert found.binding.value == pytest.approx(found.clipped["ppo"].value / 2, rel=0.15)


def test_without_old_logprobs_the_factors_are_not_told_apart_and_the_column_is_named():
    batch = replace(rollouts(), token_columns={})
    found = objective_split(batch)
    assert set(found.factors) == {BACKEND}
    assert found.backend_share is None
    assert any("old_logprob" in line for line in found.not_told)


def test_staleness_is_what_fresh_tokens_do_not_show():
    batch = rollouts(backend=0.0, update=0.0)
    lag_T = batch.sequence_T % 2
    rng = np.random.default_rng(5)
    noise_T = np.where(lag_T > 0, 0.06, 0.02) * rng.standard_normal(batch.tokens)
    columns = {"old_logprob": batch.rollout_logprobs_T + noise_T, "rollout_version": 5 - lag_T}
    columns["trainer_version"] = np.full(batch.tokens, 5)
    found = objective_split(replace(batch, token_columns=columns))
    assert found.staleness.value == pytest.approx(1 - 4 / 20, abs=0.05)
    assert found.staleness.low < found.staleness.value < found.staleness.high


@pytest.mark.parametrize("verdict", [Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED])
def test_nothing_is_recommended_before_both_layers_match(verdict):
    split = objective_split(rollouts(outliers=0.05))
    for found in (split, *(recommended(split, both) for both in ((Verdict.MATCH, verdict), (verdict, Verdict.MATCH)))):
        assert found.recommendation == UNDECIDED


def test_a_backend_that_clips_nothing_needs_no_correction():
    assert recommended(objective_split(rollouts(backend=0.001)), MATCH).recommendation.correction is None


def test_a_few_far_tokens_are_masked():
    found = recommended(objective_split(rollouts(backend=0.005, outliers=0.015)), MATCH)
    assert found.recommendation.correction in {"icepop", "mis"}
    assert found.recommendation.cost.touched == pytest.approx(0.01, abs=0.01)


def test_many_far_tokens_are_truncated():
    found = recommended(objective_split(rollouts(backend=0.005, outliers=0.2)), MATCH)
    assert found.recommendation.correction == "tis"


def test_sequences_that_drift_while_tokens_stay_in_range_are_corrected_as_sequences():
    found = recommended(objective_split(rollouts(backend=0.01, drift=0.05)), MATCH)
    assert found.recommendation.correction == "sequence"


def test_costs_are_shares_of_the_tokens_and_masking_lowers_what_is_left():
    found = objective_split(rollouts(outliers=0.03))
    costs = {cost.name: cost for cost in found.corrections}
    assert set(costs) == {"tis", "mis", "icepop", "sequence"}
    assert all(0 <= cost.touched <= 1 for cost in costs.values())
    assert costs["mis"].k2_left < 0.1 * found.factors[BACKEND].k2
    assert costs["icepop"].touched <= costs["mis"].touched


def test_a_document_of_a_split_is_json():
    document = plain(recommended(objective_split(rollouts()), MATCH))
    assert json.loads(json.dumps(document))["factors"][BACKEND]["clipped"]["gspo"]["value"] >= 0


def test_a_batch_without_a_comparable_token_is_refused():
    batch = rollouts()
    with pytest.raises(ValueError, match="no comparable token"):
        objective_split(replace(batch, trainer_logprobs_T=np.full(batch.tokens, np.nan)))
