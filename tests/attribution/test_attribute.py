"""The decision procedure: order, gates, corrections, what stays unexplained and what could not be tested."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax
from selftest.faults import all_faults
from token_tables import table, with_columns, with_trainer
from worlds.plant import Dose

from rlaudit import causes
from rlaudit.causes import history_rendered_anew
from rlaudit.causes.attribution.attribute import all_causes, attribute, holm_adjusted
from rlaudit.causes.attribution.cause import Stage
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.text.plain import plain
from rlaudit.tokens.alignment import alignment_report

FLOOR = 0.01


def floor_of(batch):
    return 0.5 * float(np.square(batch.trainer_logprobs_T - batch.rollout_logprobs_T).mean())


def noisier(batch, scale_T, seed=9):
    """More noise on the trainer's logprobs, in proportion to 1 - p."""
    error_T = scale_T * -np.expm1(batch.rollout_logprobs_T)
    noise_T = np.random.default_rng(seed).standard_normal(batch.tokens)
    return with_trainer(batch, np.minimum(batch.trainer_logprobs_T + error_T * noise_T, 0.0))


def judged(batch, **arguments):
    arguments = {"floor_k2": floor_of(table(prompts=40)), "alignment": alignment_report(batch)} | arguments
    return attribute(token_evidence(batch, **arguments))


def lags(batch, seed=3):
    lag_S = np.random.default_rng(seed).integers(0, 4, batch.sequences)
    return {"rollout_version": 9 - lag_S[batch.sequence_T], "trainer_version": np.full(batch.tokens, 9)}


def test_every_file_of_causes_offers_the_cause_that_it_is_named_after():
    files = {path.stem.replace("_", "-") for path in Path(causes.__path__[0]).glob("*.py")} - {"--init--"}
    assert set(all_causes()) == files


@pytest.mark.parametrize("name", sorted(all_causes()))
def test_a_cause_says_what_it_covers_where_it_belongs_and_what_its_doses_are(name):
    cause = all_causes()[name]
    assert "Covered:" in all_causes().documentation(name)
    assert [other for other in all_causes().values() if other.title == cause.title] == [cause]
    assert cause.layer in {Layer.SEMANTIC, Layer.INFERENCE_PATH}
    assert cause.least.because
    assert len(set(all_faults()[cause.name].doses)) == len(Dose)


def test_what_no_covariate_shows_is_looked_for_before_anything_is_fitted():
    for name, cause in all_causes().items():
        of_meaning = cause.layer is Layer.SEMANTIC and cause.basis is None
        assert (cause.stage is not Stage.EXCESS) == (of_meaning or name == "token-dropped-after-resume")


def test_a_cause_that_an_ablation_removes_names_one_of_its_factors():
    factors = {cause.factor for cause in all_causes().values()} - {None}
    assert factors <= set(known_factors())
    assert len(factors) >= 7


@pytest.mark.parametrize("name", sorted(all_causes()))
def test_every_cause_says_when_it_is_wrong_and_what_to_try_next(name):
    cause = all_causes()[name]
    assert len(cause.falsifier) > 20
    assert len(cause.next) > 20


def test_a_comparison_at_the_floor_is_a_match_and_names_nothing():
    found = judged(table(prompts=40))
    assert (found.verdict, found.names) == (Verdict.MATCH, frozenset())
    assert found.unexplained is None


@pytest.mark.parametrize(("times", "said"), [(0.999, "] nats^2, not surely above"), (1.5, " nats^2, below")])
def test_a_k2_that_is_not_surely_above_what_causes_are_searched_from_is_not_said_to_be_below(times, said):
    batch = noisier(table(prompts=40), 0.1)
    found = attribute(token_evidence(batch, alignment=alignment_report(batch)), margin=times * floor_of(batch))
    assert said in {one.name: one.reason for one in found.not_tested}["stale-weights"]


def test_excess_that_grows_with_the_lag_is_stale_weights():
    batch = table(prompts=40)
    batch = with_columns(batch, **lags(batch))
    lag_T = batch.token_columns["trainer_version"] - batch.token_columns["rollout_version"]
    found = judged(noisier(batch, 0.05 * lag_T))
    assert found.names == {"stale-weights"}
    assert found.named[0].layer is Layer.INFERENCE_PATH
    assert found.named[0].signature.share == pytest.approx(1.0, abs=0.15)
    assert found.unexplained < 0.15


def test_the_same_excess_without_versions_is_unexplained_and_the_missing_column_is_named():
    batch = table(prompts=40)
    lag_S = np.random.default_rng(3).integers(0, 4, batch.sequences)
    found = judged(noisier(batch, 0.05 * lag_S[batch.sequence_T]))
    assert "stale-weights" not in found.names
    assert {one.name: one.reason for one in found.not_tested}["stale-weights"] == "the column version_lag is missing"


def test_a_lag_that_never_varies_cannot_be_blamed():
    batch = table(prompts=40)
    batch = with_columns(batch, rollout_version=np.full(batch.tokens, 3), trainer_version=np.full(batch.tokens, 5))
    found = judged(noisier(batch, 0.1))
    assert "lags cannot be compared" in {one.name: one.reason for one in found.not_tested}["stale-weights"]


def test_two_causes_are_both_named():
    batch = table(prompts=60)
    batch = with_columns(batch, **lags(batch))
    batch = replace(batch, sequence_columns={"cached_tokens": np.tile([0, 32], batch.sequences // 2)})
    lag_T = batch.token_columns["trainer_version"] - batch.token_columns["rollout_version"]
    cached_T = batch.sequence_columns["cached_tokens"][batch.sequence_T] > 0
    found = judged(noisier(batch, np.hypot(0.04 * lag_T, 0.15 * cached_T * np.exp(-batch.position_T / 16))))
    assert found.names == {"stale-weights", "stale-prefix-kv"}


def test_dense_noise_without_a_floor_is_never_called_precision():
    found = judged(noisier(table(prompts=40), 0.2), floor_k2=None)
    assert found.names == frozenset()
    assert found.unexplained == 1.0
    assert "rounding" in {one.name: one.reason for one in found.not_tested}["body-precision"]


def test_dense_noise_above_a_floor_is_precision_only_where_ids_show_no_memory():
    batch = noisier(table(prompts=40), 0.05)
    assert judged(batch).names == {"body-precision"}
    no_ids = replace(batch, token_id_T=np.full(batch.tokens, -1))
    assert judged(no_ids).names == frozenset()


def test_errors_that_repeat_for_a_token_id_are_not_called_precision():
    batch = table(prompts=40)
    of_id = np.random.default_rng(1).standard_normal(500)
    error_T = 0.05 * of_id[batch.token_id_T] * -np.expm1(batch.rollout_logprobs_T)
    found = judged(with_trainer(batch, np.minimum(batch.trainer_logprobs_T + error_T, 0.0)))
    assert found.names == frozenset()
    assert "weights" in {one.name: one.reason for one in found.not_tested}["body-precision"]


def test_shifted_sequences_stop_the_procedure():
    batch = table(prompts=40)
    found = judged(with_trainer(batch, np.roll(batch.trainer_logprobs_T, 1)))
    assert found.names == {"off-by-one"}
    assert "do not hold the same sampled tokens" in {one.name: one.reason for one in found.not_tested}["stale-weights"]


@pytest.mark.parametrize(("side", "number"), [("rollout", 0.0), ("trainer", 0.0), ("rollout", -4.0)])
def test_a_number_that_no_sampler_repeats_was_put_in_and_nothing_else_is_named(side, number):
    batch = table(prompts=40)
    far_T = np.random.default_rng(4).random(batch.tokens) < 0.02
    values = {"rollout": batch.rollout_logprobs_T.copy(), "trainer": batch.trainer_logprobs_T.copy()}
    other = "trainer" if side == "rollout" else "rollout"
    values[side][far_T] = number
    values[other][far_T] = number - 2.0 - np.random.default_rng(5).exponential(1.0, int(far_T.sum()))
    found = judged(replace(batch, rollout_logprobs_T=values["rollout"], trainer_logprobs_T=values["trainer"]))
    assert found.names == {"placed-logprobs"}
    assert f"have the {side} logprob {number:g}" in found.named[0].signature.because


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_rows_in_another_order_on_one_side_are_named_and_nothing_else(share):
    batch = table(prompts=40)
    rows = np.arange(batch.sequences).repeat(40).reshape(-1, 40)
    moved = np.random.default_rng(2).choice(batch.sequences, round(share * batch.sequences), replace=False)
    trainer_SL = batch.trainer_logprobs_T.reshape(rows.shape).copy()
    trainer_SL[moved] = trainer_SL[np.roll(moved, 1)]
    found = judged(with_trainer(batch, trainer_SL.ravel()))
    assert found.names == {"swapped-rows"}
    assert 0.8 * share <= found.named[0].signature.effect <= share


def test_two_rows_that_fit_another_among_many_that_do_not_are_not_the_cause():
    batch = table(prompts=40)
    trainer_SL = table(seed=7, prompts=40).trainer_logprobs_T.reshape(-1, 40)
    trainer_SL[40:] = batch.trainer_logprobs_T.reshape(-1, 40)[40:]
    trainer_SL[[40, 41]] = trainer_SL[[41, 40]]
    assert judged(with_trainer(batch, trainer_SL.ravel())).names == {"unrelated-rows"}


def test_rows_that_fit_no_other_are_neither_called_swapped_nor_another_tokenisation():
    batch = table(prompts=40)
    elsewhere = table(seed=7, prompts=40).trainer_logprobs_T
    half_T = batch.sequence_T % 2 == 0
    found = judged(with_trainer(batch, np.where(half_T, elsewhere, batch.trainer_logprobs_T)))
    assert found.names == {"unrelated-rows"}


def test_logprobs_of_0_are_not_put_in_if_sampling_is_near_greedy():
    batch = table(prompts=40)
    far_T = np.random.default_rng(4).random(batch.tokens) < 0.02
    batch = replace(batch, rollout_logprobs_T=np.where(far_T, 0.0, batch.rollout_logprobs_T))
    batch = with_trainer(batch, np.where(far_T, -3.0 - batch.position_T / 100, batch.trainer_logprobs_T))
    assert "placed-logprobs" in judged(batch).names
    greedy = judged(batch, sampling=Semantics(temperature=0.1), trainer=Semantics(temperature=0.1))
    assert "placed-logprobs" not in greedy.names


@pytest.mark.parametrize(("filters", "named"), [({"min_p": 0.2}, False), ({"top_p": 0.9}, True), ({}, True)])
def test_logprobs_of_0_are_not_put_in_if_a_filter_that_was_requested_keeps_unlikely_tokens_alone(filters, named):
    batch = table(prompts=40)
    far_T = np.random.default_rng(4).random(batch.tokens) < 0.1
    batch = replace(batch, rollout_logprobs_T=np.where(far_T, 0.0, batch.rollout_logprobs_T))
    batch = with_trainer(batch, np.where(far_T, -1.1 - batch.position_T / 100, batch.trainer_logprobs_T))
    found = judged(batch, sampling=Semantics(**filters))
    assert ("placed-logprobs" in found.names) == named


def test_older_weights_until_an_update_in_flight_are_not_another_prompt():
    batch = table(prompts=60, samples=2, length=120)
    until_S = np.random.default_rng(6).integers(10, 110, batch.sequences)
    before = batch.position_T < until_S[batch.sequence_T]
    assert "bos" not in judged(noisier(batch, np.where(before, 0.2, 0.0))).names
    uncached = with_columns(batch, cached_tokens=np.zeros(batch.tokens))
    assert judged(noisier(uncached, 0.4 * np.exp(-batch.position_T / 8))).names == {"bos"}


def test_far_tokens_of_one_sign_or_at_the_end_are_no_routing_flips():
    batch = table(prompts=60)
    random = np.random.default_rng(7)
    far_T = random.random(batch.tokens) < 0.02
    size_T = random.uniform(0.5, 0.9, batch.tokens)
    sign_T = random.choice([-1.0, 1.0], batch.tokens)
    last_T = np.append(np.diff(batch.sequence_T) > 0, True)
    names = {}
    for kind, moved_T in {
        "both signs": far_T * size_T * sign_T,
        "less likely": -1.0 * far_T * size_T,
        "last": last_T * size_T * sign_T,
    }.items():
        rollout_T = np.minimum(batch.rollout_logprobs_T, -1.0)
        moved = replace(batch, rollout_logprobs_T=rollout_T, trainer_logprobs_T=rollout_T + moved_T)
        names[kind] = judged(noisier(moved, 0.02)).names & {"moe-routing"}
    assert names == {"both signs": {"moe-routing"}, "less likely": set(), "last": set()}


@pytest.mark.parametrize(
    ("requested", "named"), [(Semantics(top_p=0.95), {"filters-not-replayed"}), (Semantics(), set())]
)
def test_a_filter_that_was_requested_is_told_under_rounding_and_one_that_was_not_is_a_bias(requested, named):
    batch = table(prompts=60)
    random = np.random.default_rng(8)
    kept_T = np.log(random.uniform(0.95, 1.0, batch.tokens))
    batch = noisier(with_trainer(batch, batch.trainer_logprobs_T + kept_T), 0.05)
    found = judged(batch, sampling=requested)
    assert found.names & {"filters-not-replayed"} == named


def test_a_missing_mask_is_told_from_logs_alone_by_its_sign():
    batch = table(prompts=40)
    kept = np.random.default_rng(2).uniform(0.7, 1.0, batch.tokens)
    batch = with_trainer(batch, batch.trainer_logprobs_T + np.where(batch.rollout_logprobs_T < -0.1, np.log(kept), 0))
    found = judged(batch, sampling=Semantics(top_p=0.9))
    assert found.names == {"filters-not-replayed"}
    assert found.named[0].layer is Layer.SEMANTIC


def top_logprobs(batch, temperature, seed=4):
    """Five best of normal logits at a temperature, both sides with the same ids."""
    logits_TK = -np.sort(-3.0 * np.random.default_rng(seed).standard_normal((batch.tokens, 40)), axis=1)
    scaled = logits_TK / temperature
    return (scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))[:, :5]


@pytest.mark.parametrize(
    ("reported", "trained", "name"), [(1.0, 0.7, "raw-logprobs"), (0.7, 1.0, "trainer-temperature"), (0.7, 0.7, None)]
)
def test_temperatures_are_told_from_the_top_logprobs_of_both_sides(reported, trained, name):
    batch = table(prompts=40)
    ids_TK = np.tile(np.arange(5), (batch.tokens, 1))
    batch = replace(
        batch,
        rollout_top_ids_TK=ids_TK,
        trainer_top_ids_TK=ids_TK,
        rollout_top_logprobs_TK=top_logprobs(batch, reported),
        trainer_top_logprobs_TK=top_logprobs(batch, trained),
    )
    found = judged(batch, sampling=Semantics(0.7), trainer=Semantics(trained))
    assert found.names == ({name} if name else frozenset())
    # A penalty that only the engine applies moves them as well.
    assert judged(batch, sampling=Semantics(0.7, presence_penalty=0.5), trainer=Semantics(trained)).names == frozenset()


def test_what_a_changed_history_does_fades_along_the_turn_that_follows():
    batch = table(prompts=2)
    changed_T = batch.sequence_T % 2
    basis_TK = history_rendered_anew.basis(token_evidence(with_columns(batch, after_a_changed_history=changed_T)))
    after_KT, fading_KT = basis_TK[changed_T == 1][:40, :1].T, basis_TK[changed_T == 1][:40, 1:].T
    assert (after_KT == 1.0).all() and (np.diff(fading_KT) < 0).all() and (basis_TK[changed_T == 0] == 0.0).all()


def test_what_leans_is_listed_by_its_own_layer():
    batch = table(prompts=40)
    found = judged(noisier(with_columns(batch, **lags(batch)), 0.1 * (batch.sequence_T % 2)))
    leaning = replace(found, leaning=dict.fromkeys(("stale-weights", "penalty")))
    assert leaning.leaning_of(Layer.SEMANTIC) == ("penalty",)
    assert leaning.leaning_of(Layer.INFERENCE_PATH) == ("stale-weights",)


def test_a_document_of_an_attribution_is_json():
    batch = table(prompts=40)
    document = plain(judged(noisier(with_columns(batch, **lags(batch)), 0.1)))
    assert json.loads(json.dumps(document))["verdict"] == "mismatch"


def test_holm_never_adjusts_below_the_smallest_and_keeps_the_order():
    adjusted = holm_adjusted({"a": 0.01, "b": 0.02, "c": 0.9})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.04, "c": 0.9})


def test_evidence_of_many_tokens_is_a_sample_of_whole_sequences():
    evidence = token_evidence(table(prompts=40), most_tokens=1000)
    assert evidence.tokens <= 1000
    assert set(np.bincount(evidence.sequence_T)) == {40}


def test_a_cache_cannot_be_stale_where_the_weights_never_changed():
    batch = table(prompts=40)
    batch = replace(batch, sequence_columns={"cached_tokens": np.tile([0, 32], batch.sequences // 2)})
    noisy = noisier(batch, np.where(batch.sequence_columns["cached_tokens"][batch.sequence_T] > 0, 0.2, 0.0))
    assert judged(noisy).names == {"stale-prefix-kv"}
    constant = {"rollout_version": np.zeros(batch.tokens), "trainer_version": np.zeros(batch.tokens)}
    found = judged(with_columns(noisy, **constant))
    assert "stale-prefix-kv" not in found.names
    assert "never changed" in {one.name: one.reason for one in found.not_tested}["stale-prefix-kv"]


def fading(batch, size=1.0):
    return size * np.exp(-batch.position_T / 6.0)


def test_outliers_where_another_cause_is_at_work_are_no_routing_flips():
    calm = table(prompts=60)
    cached = np.where(calm.sequence_T % 2, 16, 0)
    stale = noisier(calm, 0.4 * (cached > 0) * fading(calm))
    far = np.flatnonzero((cached > 0) & (calm.position_T < 4) & (calm.rollout_logprobs_T < -0.7))[::12]
    trainer = stale.trainer_logprobs_T.copy()
    trainer[far] -= 1.2
    columns = {"cached_tokens": cached, "rollout_version": calm.sequence_T % 3}
    beside = judged(with_columns(with_trainer(stale, trainer), **columns))
    assert "stale-prefix-kv" in beside.names
    assert "moe-routing" not in beside.names
    trainer = stale.trainer_logprobs_T.copy()
    trainer[np.flatnonzero((cached == 0) & (calm.rollout_logprobs_T < -0.7))[::20]] -= 0.5
    assert "moe-routing" in judged(with_columns(with_trainer(stale, trainer), **columns)).names


def test_the_length_of_a_prompt_is_known_from_its_token_ids():
    batch = table(prompts=4)
    ids_S = np.empty(batch.sequences, dtype=object)
    ids_S[:] = [np.arange(10 + s) for s in range(batch.sequences)]
    evidence = token_evidence(replace(batch, prompt_token_ids_S=ids_S))
    np.testing.assert_array_equal(evidence.columns["absolute_position"], batch.position_T + 10 + batch.sequence_T)


def with_tops(batch, rollout_TK, trainer_TK):
    ids_TK = np.tile(np.arange(5), (batch.tokens, 1))
    return replace(
        batch,
        rollout_top_ids_TK=ids_TK,
        trainer_top_ids_TK=ids_TK,
        rollout_top_logprobs_TK=rollout_TK,
        trainer_top_logprobs_TK=trainer_TK,
    )


@pytest.mark.parametrize(("noise", "temperature", "names"), [(0.8, 1.0, set()), (0.35, 1.3, {"trainer-temperature"})])
def test_noise_between_two_models_is_no_temperature_and_hides_none(noise, temperature, names):
    batch = table(prompts=40)
    common_TK, rng = top_logprobs(batch, 1.0), np.random.default_rng(6)
    rollout_TK, trainer_TK = (common_TK + noise * rng.standard_normal(common_TK.shape) for _ in range(2))
    found = judged(with_tops(batch, rollout_TK, trainer_TK / temperature), trainer=Semantics(temperature))
    assert found.names == names


@pytest.mark.parametrize(("spread", "names"), [(0.0, {"trainer-temperature"}), (0.2, set())])
def test_a_slope_that_leaves_most_of_the_difference_is_no_temperature(spread, names):
    """Other weights sharpen some contexts and flatten others: on average a slope is left that no side was set to."""
    batch, rng = table(prompts=200), np.random.default_rng(6)
    common_TK, slope = top_logprobs(batch, 1.0), 1.15
    context_T1 = np.exp(spread * rng.standard_normal((batch.tokens, 1)))
    tops = with_tops(batch, common_TK, common_TK / slope / context_T1)
    found = judged(tops, sampling=Semantics(1.0), trainer=Semantics(slope))
    assert found.names & {"trainer-temperature", "raw-logprobs"} == names


def repeating(batch, share=0.5, seed=5):
    """The same tokens with ids that a sequence holds already at `share` of its places."""
    rng = np.random.default_rng(seed)
    again_T = (rng.random(batch.tokens) < share) & (batch.position_T > 0)
    fresh_T = 1000 + np.arange(batch.tokens)
    first_T = fresh_T[batch.offsets[batch.sequence_T]]
    return replace(batch, token_id_T=np.where(again_T, first_T, fresh_T)), again_T


def test_a_penalty_lifts_seen_tokens_and_lowers_the_others():
    batch, again_T = repeating(table(prompts=40, peaked=0.0))
    room_T = -np.expm1(batch.rollout_logprobs_T)
    # What seen tokens lose the others gain: the mean ratio stays 1.
    shift_T = np.where(again_T, 0.15, -0.175) * room_T
    found = judged(with_trainer(batch, np.minimum(batch.trainer_logprobs_T + shift_T, 0.0)), floor_k2=None)
    assert found.names == {"penalty"}


@pytest.mark.parametrize(("prompts", "apart", "noise", "named"), [(30, 0.2, 0.3, False), (60, 0.12, 0.2, True)])
def test_a_penalty_that_explains_a_tenth_at_best_has_to_do_so_surely(prompts, apart, noise, named):
    """An update moves what is repeated, too, in some prompts more than in others; a penalty moves it in all."""
    batch, again_T = repeating(table(prompts=prompts, length=120, peaked=0.0))
    room_T, rng = -np.expm1(batch.rollout_logprobs_T), np.random.default_rng(2)
    of_prompt_T = 0.12 + apart * rng.standard_normal(prompts)[batch.prompt_S[batch.sequence_T]]
    shift_T = np.where(again_T, of_prompt_T, -0.12) + noise * rng.standard_normal(batch.tokens)
    found = judged(with_trainer(batch, np.minimum(batch.trainer_logprobs_T + shift_T * room_T, 0.0)), floor_k2=None)
    assert ("penalty" in found.names) == named


def test_seen_tokens_that_stay_where_they_are_while_others_move_are_no_penalty():
    batch, again_T = repeating(table(prompts=40, peaked=0.0))
    room_T = -np.expm1(batch.rollout_logprobs_T)
    noise_T = np.random.default_rng(2).standard_normal(batch.tokens)
    other_T = np.where(again_T, 0.0, -0.1 + 0.3 * noise_T) * room_T
    found = judged(with_trainer(batch, np.minimum(batch.trainer_logprobs_T + other_T, 0.0)), floor_k2=None)
    assert "penalty" not in found.names


def test_outliers_of_a_cause_that_was_found_do_not_make_a_second_one_of_a_few_others():
    batch = table(prompts=60)
    batch = with_columns(batch, **lags(batch))
    rng = np.random.default_rng(1)
    lagging_T = batch.token_columns["rollout_version"] < 9
    heavy_T = 0.05 * lagging_T * np.abs(rng.standard_t(2, batch.tokens))
    heavy_T[rng.choice(np.flatnonzero(~lagging_T), 25, replace=False)] = 0.15
    found = judged(noisier(batch, heavy_T))
    assert found.names == {"stale-weights"}


def test_a_cache_may_hold_what_an_update_before_the_log_left_stale():
    batch = table(prompts=40)
    batch = replace(batch, sequence_columns={"cached_tokens": np.tile([0, 32], batch.sequences // 2)})
    noisy = noisier(batch, np.where(batch.sequence_columns["cached_tokens"][batch.sequence_T] > 0, 0.2, 0.0))
    assert judged(with_columns(noisy, rollout_version=np.full(batch.tokens, 7))).names == {"stale-prefix-kv"}


def test_where_it_is_known_which_cached_tokens_are_stale_the_others_are_no_sign_of_it():
    calm = table(prompts=40)
    cached = np.where(calm.sequence_T % 2, 32.0, 0.0)
    noisy = noisier(calm, np.where(cached > 0, 0.2, 0.0))
    assert judged(with_columns(noisy, cached_tokens=cached)).names == {"stale-prefix-kv"}
    found = judged(with_columns(noisy, cached_tokens=cached, stale_tokens=0.0 * cached))
    assert "stale-prefix-kv" not in found.names
    assert "older weights" in {one.name: one.reason for one in found.not_tested}["stale-prefix-kv"]
    # Every sequence had cached tokens; those of half of them were stale.
    found = judged(with_columns(noisy, cached_tokens=np.full(calm.tokens, 32.0), stale_tokens=cached))
    assert found.names == {"stale-prefix-kv"}
    unknown = np.where(cached > 0, np.nan, 0.0)
    assert judged(with_columns(noisy, cached_tokens=cached, stale_tokens=unknown)).names == {"stale-prefix-kv"}


@pytest.mark.parametrize("temperature", [0.7, 1.2])
def test_a_mean_ratio_above_1_is_of_raw_logprobs_only_if_the_temperature_can_move_tokens_so_far(temperature):
    batch, rng = table(prompts=40), np.random.default_rng(3)
    logits_TV = 2.0 * rng.standard_normal((batch.tokens, 50))
    raw_TV, cooled_TV = log_softmax(logits_TV, axis=1), log_softmax(logits_TV / temperature, axis=1)
    drawn_T = (np.exp(cooled_TV).cumsum(axis=1) > rng.random((batch.tokens, 1))).argmax(axis=1)
    raw_T, cooled_T = (side[np.arange(batch.tokens), drawn_T] for side in (raw_TV, cooled_TV))
    for trainer_T, names in ((cooled_T, {"raw-logprobs"}), (rng.permutation(cooled_T), set())):
        rows = replace(batch, rollout_logprobs_T=raw_T, trainer_logprobs_T=trainer_T)
        found = judged(rows, sampling=Semantics(temperature), trainer=Semantics(temperature))
        assert found.names == names
