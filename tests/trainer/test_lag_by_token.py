"""Batches that updates met: each token is held against the weights that sampled it, and its lag is its own.

Needs torch in the interpreter that runs the tests, as a trainer's environment has it.
"""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="a trainer needs torch: run these tests in a trainer's environment")
pytest.importorskip("safetensors", reason="as above")

TRAINER = Path(__file__).parents[2] / "rlaudit" / "trainer"
VOCABULARY = 7
# Two sequences of 4 and 2 tokens; an update met the first after two of them, and the second not at all.
VERSIONS = [[1, 1, 3, 3], [3, 3]]


@pytest.fixture(scope="module")
def train():
    spec = importlib.util.spec_from_file_location("train", TRAINER / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Policy:
    """Its weights are a shift: version n has logits that are n times some direction."""

    divisor = 1.0

    def logits(self, weights, batch):
        generator = torch.Generator().manual_seed(0)
        return weights["shift"] * torch.randn(VOCABULARY, generator=generator).expand(*batch.tokens_ST.shape, -1)


def weights(version):
    return {"shift": torch.tensor(float(version))}


SNAPSHOTS = {version: weights(version) for version in (0, 1, 2, 3)}


def batch_of(train, wrong_after_update=0.0):
    """The batch as an engine returns it that samples by the weights which it says, but for what is wrong."""
    samples, policy = [], Policy()
    for versions in VERSIONS:
        sample = {"token_ids": [2] * len(versions), "logprobs": [0.0] * len(versions), "versions": versions}
        alone = train.Batch([[1, 1]], [sample])
        for place, version in enumerate(versions):
            logprobs = policy.logits(weights(version), alone).log_softmax(-1)
            sample["logprobs"][place] = float(logprobs[0, 0, 2]) - wrong_after_update * (version != versions[0])
        samples.append(sample)
    return train.Batch([[1, 1], [1, 1]], samples)


def test_a_batch_of_the_policys_own_weights_is_scored_by_its_gradient_step_alone(train):
    batch = batch_of(train)
    batch.versions_ST[:] = 3
    assert train.under_their_versions(Policy(), {}, batch, 3) is None


def test_every_token_is_scored_by_the_weights_that_sampled_it(train):
    batch = batch_of(train)
    then = train.under_their_versions(Policy(), SNAPSHOTS, batch, 3)
    found = train.backend(Policy(), then, batch, 1.0)
    assert found["rlaudit/backend_k3"] < 1e-12 and found["rlaudit/flight_k3"] < 1e-12
    assert found["rlaudit/flight_tokens"] == 2


def test_what_is_wrong_after_an_update_within_a_sequence_is_told_apart(train):
    batch = batch_of(train, wrong_after_update=0.1)
    then = train.under_their_versions(Policy(), SNAPSHOTS, batch, 3)
    found = train.backend(Policy(), then, batch, 1.0)
    assert found["rlaudit/backend_k3"] < 1e-12
    assert found["rlaudit/flight_k3"] == pytest.approx(torch.expm1(torch.tensor(0.1)).item() - 0.1, rel=1e-4)


def test_the_weights_before_are_those_of_the_update_before_each_tokens_own(train):
    batch = batch_of(train)
    batch.rollout_ST = batch.of_tokens(
        train.mixed_logits(Policy(), SNAPSHOTS, batch, batch.versions_ST - 1).log_softmax(-1)
    )
    found = train.older(Policy(), SNAPSHOTS, batch)
    assert found["rlaudit/previous_k3"] < 1e-12 < found["rlaudit/first_k3"]


def test_lag_is_of_tokens_and_padding_has_none(train):
    batch = batch_of(train)
    assert train.metrics.lags(3 - batch.versions_ST, batch.mask_ST) == {
        "stats/lag": pytest.approx(4 / 6),
        "rlaudit/max_lag": 2,
    }
