"""The two families of simulated models differ, and their observations are what a user would have: no label."""

import dataclasses

import numpy as np
import pytest
from selftest.blind import Label, planted
from selftest.faults import all_faults

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.meaning.candidates import Semantics
from worlds.generator import all_generators
from worlds.ground import new_ground
from worlds.meaning_tables import logprobs_of, meaning_of
from worlds.observe import Observation, measured_floor
from worlds.plant import Dose, healthy


@pytest.fixture(scope="module", params=sorted(all_generators()))
def ground(request):
    few = dataclasses.replace(all_generators()[request.param], prompts=12)
    return new_ground(few, np.random.default_rng(3))


def test_the_generators_differ_in_everything_that_thresholds_could_lean_on():
    development, held_out = all_generators()["development"], all_generators()["held-out"]
    for name in ("vocabulary", "prompts", "samples", "temperature", "floor", "lengths", "logits", "noise", "filters"):
        assert getattr(development, name) != getattr(held_out, name), name


def test_an_observation_has_no_label():
    names = {field.name for field in dataclasses.fields(Observation)}
    assert names == {
        "batch", "scored", "base_logprob_T", "prompt_tokens_T", "seen_T", "sampling", "trainer", "floor_k2"
    }  # fmt: skip


def test_noise_has_the_standard_deviation_asked_for(ground):
    scale_T = np.full(ground.tokens, 0.02)
    errors = ground.generator.noise(scale_T, ground.sequence_T, np.random.default_rng(1))
    assert errors.std() == pytest.approx(0.02, rel=0.1)


def test_a_healthy_world_is_at_the_floor_that_was_measured(ground):
    rng = np.random.default_rng(2)
    floor = measured_floor(ground, rng)
    observation = planted(ground, Label(), floor, rng)
    apart_T = observation.batch.trainer_logprobs_T - observation.batch.rollout_logprobs_T
    assert 0.5 * np.square(apart_T).mean() == pytest.approx(floor, rel=0.4)


def test_every_covariate_varies_in_every_world(ground):
    observation = planted(ground, Label(), 1e-5, np.random.default_rng(2))
    columns = {**observation.batch.token_columns, **observation.batch.sequence_columns}
    for name in ("rollout_version", "cached_tokens", "batch_id"):
        assert np.ptp(columns[name]) > 0, name
    assert np.ptp(observation.prompt_tokens_T) > 0


def test_trainer_logprobs_of_the_tables_are_those_of_the_whole_distribution(ground):
    observation = planted(ground, Label(), 1e-5, np.random.default_rng(2))
    rows = np.arange(ground.tokens)
    whole = logprobs_of(ground.logits_TV, ground.seen_TV, ground.plain)[rows, observation.batch.token_id_T]
    assert np.abs(observation.batch.trainer_logprobs_T - whole).max() < 1e-4


@pytest.mark.parametrize("meaning", [Semantics(0.7, top_p=0.9), Semantics(1.0, top_k=5), Semantics(1.3, min_p=0.1)])
def test_filters_keep_what_vllm_keeps(meaning):
    logits = np.random.default_rng(0).normal(0, 2, (50, 30)).astype(np.float32)
    logprobs = logprobs_of(logits, np.zeros_like(logits, dtype=bool), meaning)
    kept = np.isfinite(logprobs)
    assert np.allclose(np.exp(logprobs).sum(axis=1), 1.0, atol=1e-5)
    plain = logits / meaning.temperature
    mass = np.exp(plain - np.log(np.exp(plain).sum(axis=1, keepdims=True)))
    for row in range(50):
        order = np.argsort(-mass[row])
        sure = {int(order[0])}
        if meaning.top_k:
            sure = set(order[: meaning.top_k].tolist())
        if meaning.top_p < 1:
            before = np.cumsum(mass[row][order]) - mass[row][order]
            sure = set(order[before < meaning.top_p].tolist())
        if meaning.min_p:
            sure = set(np.flatnonzero(mass[row] >= meaning.min_p * mass[row].max()).tolist())
        assert set(np.flatnonzero(kept[row]).tolist()) == sure


def test_a_meaning_without_filters_keeps_everything():
    sorted_logits = -np.sort(-np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32), axis=1)
    assert np.isneginf(meaning_of(sorted_logits, Semantics()).cut_T).all()


@pytest.mark.parametrize("cause", sorted(all_causes()))
def test_every_fault_changes_the_world_and_two_doses_differ(cause, ground):
    fault = all_faults()[cause]
    clean = planted(ground, Label(), 1e-5, np.random.default_rng(5))
    seen = [planted(ground, Label((cause,), (dose,)), 1e-5, np.random.default_rng(5)) for dose in (Dose.LOW, Dose.TOP)]
    apart = [float(np.abs(one.batch.trainer_logprobs_T - one.batch.rollout_logprobs_T).sum()) for one in (clean, *seen)]
    assert len(set(apart)) == 3
    assert len(fault.doses) == 3


def test_plants_compose(ground):
    rng = np.random.default_rng(0)
    plant = healthy(ground)
    for cause in ("raw-logprobs", "bos", "stale-weights"):
        plant = all_faults()[cause].plant(plant, ground, Dose.TOP, rng)
    assert (len(plant.scales), len(plant.drifts)) == (1, 1)
    assert plant.reported == Semantics()
