"""The share of rounding follows from the steps of the lattice, for one side and for both."""

import numpy as np
import pytest

from rlaudit.statistics.measurement.head_rounding import head_rounding


def bfloat16(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def tops(logits, best=5):
    logits = -np.sort(-logits.astype(np.float32), axis=1)
    shifted = logits - logits[:, :1]
    return (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))[:, :best].astype(np.float32)


def model(seed=0, largest=24.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.5, (3000, 60))
    return logits - logits.max(axis=1, keepdims=True) + largest * rng.uniform(0.8, 1.2, (3000, 1))


@pytest.mark.parametrize(("largest", "step"), [(24.0, 0.125), (12.0, 0.0625), (48.0, 0.25)])
def test_one_rounded_side_is_told_with_its_step(largest, step):
    logits = model(largest=largest)
    found = head_rounding(tops(bfloat16(logits)), tops(logits), 1.0, 1.0)
    assert found.rounded_sides == ("rollout",)
    assert found.step == pytest.approx(step, rel=0.3)


def test_the_variance_of_one_rounded_side_is_a_twelfth_of_the_squared_step():
    logits = model(largest=24.0)
    found = head_rounding(tops(bfloat16(logits)), tops(logits), 1.0, 1.0)
    real = np.var(bfloat16(logits)[:, 0] - logits[:, 0].astype(np.float32))
    assert found.explained(1.0) == pytest.approx(real, rel=0.4)


def test_two_rounded_sides_round_alike_where_their_bodies_agree():
    rng = np.random.default_rng(1)
    logits = model()
    noisy = logits + 0.002 * rng.standard_normal(logits.shape)
    found = head_rounding(tops(bfloat16(logits)), tops(bfloat16(noisy)), 1.0, 1.0)
    assert found.rounded_sides == ("rollout", "trainer")
    real = np.var(bfloat16(logits) - bfloat16(noisy))
    assert 0.3 * real < found.explained(real) <= real


def test_float32_heads_explain_nothing():
    logits = model()
    found = head_rounding(tops(logits), tops(logits + 1e-3), 1.0, 1.0)
    assert found.rounded_sides == ()
    assert found.explained(1.0) == 0.0
    assert found.unclear is None


def test_without_top_logprobs_nothing_is_said():
    assert head_rounding(None, None, 1.0, 1.0).rounded_sides == ()
