"""A cause is named only if nothing that leaves the same signature fits; what fits instead is listed."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from test_attribute import fading, judged, noisier
from token_tables import table, with_columns, with_trainer

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.causes.attribution.rival_patterns import errs_by_token, manifold_apart
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.log_statistics import seen_shift
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.statistics.measurement.excess import fit_excess

OTHER_WEIGHTS = "other weights or rope settings"


def with_outliers(batch, far_T, sign_T, size=0.5, seed=7):
    """The same table with some tokens far off, none of them nearly certain."""
    rollout_T = np.minimum(batch.rollout_logprobs_T, -1.0)
    size_T = size * np.random.default_rng(seed).uniform(1.0, 1.8, batch.tokens)
    moved = replace(batch, rollout_logprobs_T=rollout_T, trainer_logprobs_T=rollout_T + far_T * sign_T * size_T)
    return noisier(moved, 0.02)


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        ("any token", ()),
        ("some sequences", ("stale weights in one replica of the fleet",)),
        ("one sign of a token id", ("penalty",)),
        ("the least likely tokens", ("placed-logprobs",)),
        ("one place of a block", ("chunk-boundary",)),
        ("hardly larger than noise", ("noise of the engine that differs from token to token",)),
    ],
)
def test_outliers_that_share_a_place_or_a_sign_or_are_hardly_larger_are_no_routing_flips(kind, fits):
    batch = table(prompts=60)
    random = np.random.default_rng(7)
    sign_T, chance_T = random.choice([-1.0, 1.0], batch.tokens), random.random(batch.tokens)
    far_T = chance_T < 0.02
    if kind == "some sequences":
        far_T = (chance_T < 0.5) & (batch.sequence_T % 24 == 0)
    if kind == "one sign of a token id":
        batch = replace(batch, token_id_T=np.where(far_T, batch.token_id_T % 2, batch.token_id_T))
        sign_T = np.where(batch.token_id_T == 0, 1.0, -1.0)
    if kind == "the least likely tokens":
        far_T = (chance_T < 0.5) & (batch.rollout_logprobs_T < np.quantile(batch.rollout_logprobs_T, 0.04))
    if kind == "one place of a block":
        far_T = (chance_T < 0.5) & (batch.position_T % 16 == 5)
    found = judged(with_outliers(batch, far_T, sign_T, size=0.2 if kind == "hardly larger than noise" else 0.5))
    assert found.names & {"moe-routing"} == (set() if fits else {"moe-routing"})
    assert set(fits) <= set(found.fits) and ("moe-routing" in found.fits) == bool(fits)


@pytest.mark.parametrize("cached", [None, "all", "none"])
def test_excess_that_fades_is_named_once_no_stale_prefix_can_be_it(cached):
    batch = table(prompts=60)
    if cached is not None:
        batch = with_columns(batch, cached_tokens=np.full(batch.tokens, 16.0 * (cached == "all")))
    found = judged(noisier(batch, 0.2 * fading(batch)))
    if cached == "none":
        assert (found.names, found.fits) == ({"bos"}, ())
    else:
        assert (found.names, found.fits) == (set(), ("bos", "stale-prefix-kv"))


def test_what_fits_stands_in_the_layer_with_what_settles_it():
    batch = table(prompts=60)
    layer = compare([noisier(batch, 2.0 * fading(batch))], Semantics(), Semantics()).layers[1]
    assert (layer.verdict, layer.causes) == (Verdict.MISMATCH, ())
    assert layer.fits == ("bos", "stale-prefix-kv")
    assert "hese causes fit: bos or stale-prefix-kv" in layer.because and "cached_tokens" in layer.next


def test_a_few_sharp_first_contexts_are_no_other_prompt():
    batch = with_columns(table(prompts=16, samples=8), cached_tokens=np.zeros(16 * 8 * 40))
    loud_T = (batch.prompt_S[batch.sequence_T] % 8 == 0) & (batch.position_T < 4)
    assert "bos" not in judged(noisier(batch, np.where(loud_T, 0.4, 0.01))).names


def test_growth_of_a_token_id_or_where_contexts_grow_sharper_names_no_quantised_cache():
    batch = table(prompts=60, length=120)
    grown_T, room_T = batch.position_T / 120, -np.expm1(batch.rollout_logprobs_T)
    assert judged(noisier(batch, 0.1 * grown_T)).names == {"quantised-kv"}
    sharper_T = batch.rollout_logprobs_T * np.exp(-2.0 * grown_T)
    sharper = noisier(replace(batch, rollout_logprobs_T=sharper_T, trainer_logprobs_T=sharper_T), 0.02 + 0.3 * grown_T)
    assert judged(sharper).fits == ("quantised-kv", "rounding of logits that grow")
    of_id = np.random.default_rng(1).standard_normal(500)[batch.token_id_T]
    moved = noisier(batch, 0.05 * grown_T)
    found = judged(with_trainer(batch, np.minimum(moved.trainer_logprobs_T + 0.15 * grown_T * of_id * room_T, 0.0)))
    assert "quantised-kv" not in found.names and {"penalty", OTHER_WEIGHTS} <= set(found.fits)


@pytest.mark.parametrize("name", sorted(all_causes()))
def test_every_rival_says_what_settles_it(name):
    assert all(len(rival.tells) > 20 for rival in all_causes()[name].rivals)


@pytest.mark.parametrize("shared", [False, True])
def test_an_error_that_all_tokens_have_in_common_is_of_no_token_id(shared):
    batch = table(prompts=60)
    side_T = np.ones(batch.tokens) if shared else np.where(batch.token_id_T % 2, 1.0, -1.0)
    error_T = 0.1 * side_T + 0.1 * np.random.default_rng(0).normal(size=batch.tokens)
    room_T = -np.expm1(batch.rollout_logprobs_T)
    moved = replace(token_evidence(batch), log_ratio_T=error_T * room_T)
    excess = fit_excess(moved.log_ratio_T, moved.room_T, moved.cluster_T, {})
    assert errs_by_token(moved.with_excess(excess)) is not shared


def test_how_much_larger_typical_squares_are_is_measured_against_the_other_tokens_alone():
    batch = table(prompts=60)
    ours_T = batch.sequence_T % 2 == 0
    found = manifold_apart(token_evidence(noisier(batch, 0.3 * ours_T + 0.1)), ours_T, ~ours_T)
    assert found.value == pytest.approx(np.log(16.0), abs=0.5)


def test_what_moves_tokens_seen_before_is_as_large_to_either_side_however_far_single_tokens_are():
    batch = table(prompts=60)
    batch = with_columns(batch, seen_before=batch.token_id_T % 2 == 0)
    far_T = 5.0 * np.random.default_rng(0).exponential(size=batch.tokens)
    evidence = replace(token_evidence(batch), rollout_logprobs_T=np.full(batch.tokens, -200.0), log_ratio_T=far_T)
    up, down = (seen_shift(replace(evidence, log_ratio_T=sign * evidence.log_ratio_T)).shift for sign in (1.0, -1.0))
    assert up.value == pytest.approx(-down.value)


@pytest.mark.parametrize(("length", "last", "named"), [(10, 4, {"bos"}), (120, 4, {"bos"}), (120, 40, set())])
def test_what_is_largest_at_first_tokens_is_bos_unless_completions_show_that_it_lasts(length, last, named):
    batch = table(prompts=60, length=length)
    batch = with_columns(batch, cached_tokens=np.zeros(batch.tokens))
    found = judged(noisier(batch, 0.3 * (batch.position_T < last)))
    assert found.names & {"bos"} == named
