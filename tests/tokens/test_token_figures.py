"""Figures of tokens: every token is in one bin, and sums are those of the tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rlaudit.report.schema import report_schema
from rlaudit.text.plain import plain
from rlaudit.tokens.token_batch import TokenBatch
from rlaudit.tokens.token_figures import (
    EDGES,
    SIZES,
    logged_figures,
    quantile,
    signed_counts,
    signed_limits,
    size_bins,
    token_figures,
)

SCHEMA = report_schema()


def tokens(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    rollout_T = -rng.exponential(1.0, count)
    trainer_T = np.minimum(rollout_T + rng.normal(0, 0.02, count), 0.0)
    return rollout_T, trainer_T, np.arange(count) % 100, rng.gamma(1.5, 1.0, count)


def of(columns):
    return token_figures("candidate", "block", *columns)


@given(st.floats(-200, 200, allow_nan=False))
def test_a_log_ratio_lies_within_the_limits_of_its_bin(value):
    size_T = size_bins(np.array([value]))
    low, high = signed_limits(int(np.argmax(signed_counts(np.array([value]), size_T))))
    inside = np.clip(value, -EDGES[-1], EDGES[-1])
    assert low * (1 + 1e-9 * np.sign(-low)) <= inside <= high * (1 + 1e-9 * np.sign(high))


def test_quantiles_of_bins_are_within_a_bin_of_those_of_the_values():
    sizes_T = np.abs(np.random.default_rng(1).normal(0, 0.01, 100_000))
    counts = np.bincount(size_bins(sizes_T), minlength=SIZES + 1)
    for share in (0.1, 0.5, 0.9):
        assert quantile(counts, share) == pytest.approx(np.quantile(sizes_T, share), rel=0.03)
    assert quantile(np.bincount(np.zeros(10, dtype=int), minlength=SIZES + 1), 0.5) == 0.0


def test_sums_are_those_of_the_tokens():
    rollout_T, trainer_T, position_T, entropy_T = whole = tokens()
    found, size_T = of(whole), np.abs(trainer_T - rollout_T)
    assert found.tokens == 3000 == sum(row[2] for row in found.log_ratio)
    for row in found.by_position:
        own_T = (position_T >= row["from"]) & (position_T < (row["below"] or np.inf))
        assert row["tokens"] == own_T.sum()
        assert row["mean"] == pytest.approx(size_T[own_T].mean(), rel=1e-3)
    for row in found.by_entropy:
        own_T = (entropy_T >= row["from"]) & (entropy_T < (row["below"] or np.inf))
        assert row["tokens"] == own_T.sum()
    for row in found.probabilities.groups:
        own_T = (np.exp(rollout_T) >= row["from"]) & (np.exp(rollout_T) < row["below"])
        assert row["trainer"] == pytest.approx(np.exp(trainer_T[own_T]).mean(), rel=1e-3)


def test_tokens_are_drawn_from_the_whole_table_and_not_from_its_beginning():
    rollout_T = np.log((np.repeat(np.arange(10), 1000) + 0.5) / 10)
    sample = np.array(of((rollout_T, rollout_T, np.arange(10_000))).probabilities.sample)
    drawn = np.bincount((sample[:, 0] * 10).astype(int), minlength=10)
    assert drawn.sum() == 300
    assert drawn.min() > 10


def test_tokens_without_a_ratio_are_left_out_and_missing_columns_are_null():
    rollout_T = np.array([-1.0, -2.0, -3.0])
    found = of((rollout_T, np.array([-1.0, -np.inf, np.nan]), np.arange(3)))
    assert (found.tokens, found.by_entropy, found.lags) == (1, None, None)


def test_an_entry_follows_the_schema():
    validator = Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/TokenFigures"})
    validator.validate(plain(of(tokens())))
    assert not validator.is_valid({**plain(of(tokens())), "tokens": -1})


def test_logged_tokens_are_counted_with_their_lags_and_broken_sequences_are_not():
    rollout_T = np.full(6, -1.0)
    trainer_T = np.array([-1.0, -1.5, -1.0, 5.0, -1.0, -1.0])
    batch = TokenBatch(
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=trainer_T,
        token_id_T=np.arange(6),
        position_T=np.array([0, 1, 0, 1, 0, 1]),
        sequence_T=np.array([0, 0, 1, 1, 2, 2]),
        prompt_S=np.array([0, 1, 2]),
        prompt_names_S=np.array(["a", "b", "c"]),
        sample_names_S=np.array([0, 0, 0]),
        token_columns={"rollout_version": np.array([3, 3, 3, 3, 1, 3]), "trainer_version": np.full(6, 3)},
    )
    found = logged_figures(batch, trainer_excludes=False)
    assert found.tokens == 4
    assert [(row.lag, row.tokens) for row in found.lags] == [(0, 3), (2, 1)]
