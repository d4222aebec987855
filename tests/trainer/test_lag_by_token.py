"""Batches that updates met: each token's lag is its own.

Needs torch in the interpreter that runs the tests, as a trainer's environment has it.
"""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="a trainer needs torch: run these tests in a trainer's environment")
pytest.importorskip("safetensors", reason="as above")

TRAINER = Path(__file__).parents[2] / "rlaudit" / "laboratory" / "trainer"
# Two sequences of 4 and 2 tokens; an update met the first after two of them, and the second not at all.
VERSIONS = [[1, 1, 3, 3], [3, 3]]


def test_lag_is_of_tokens_and_padding_has_none():
    spec = importlib.util.spec_from_file_location("train", TRAINER / "train.py")
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    samples = [{"token_ids": [2] * len(one), "logprobs": [0.0] * len(one), "versions": one} for one in VERSIONS]
    batch = train.Batch([[1, 1], [1, 1]], samples)
    assert train.metrics.mean_of_tokens(3 - batch.versions_ST, batch.mask_ST) == pytest.approx(4 / 6)
