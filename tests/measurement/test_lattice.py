import numpy as np
import pytest

from rlaudit.statistics.measurement.lattice import HeadPrecision, LatticeEvidence, lattice_hit_rate

TEMPERATURES = [1.0, 0.7, 0.6, 1.3]


def bf16(values: np.ndarray) -> np.ndarray:
    """Round to nearest even on the upper 16 bits, as hardware does."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def logits(seed: int = 0, scale: float = 3.0, offset: float = 0.0, positions: int = 200) -> np.ndarray:
    """Top logits of about 9 to 13 at scale 3."""
    noise = np.random.default_rng(seed).standard_normal((positions, 3000))
    return (scale * noise + offset).astype(np.float32)


def top_logprobs(logits_TV: np.ndarray, temperature: float, top: int = 5) -> np.ndarray:
    """log softmax in float32, the way both engines and trainers compute it."""
    divided = logits_TV.astype(np.float32) / np.float32(temperature)
    shifted = divided - divided.max(axis=1, keepdims=True)
    logprobs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float32))
    found: np.ndarray = -np.sort(-logprobs, axis=1)[:, :top]
    return found


def judged(logits_TV: np.ndarray, temperature: float = 1.0) -> LatticeEvidence:
    return lattice_hit_rate(top_logprobs(logits_TV, temperature), temperature)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize(("scale", "offset"), [(2.5, 0.0), (3.0, 12.0), (6.0, 10.0)])
def test_bf16_logits_lie_on_the_lattice_at_every_temperature(temperature: float, scale: float, offset: float) -> None:
    evidence = judged(bf16(logits(scale=scale, offset=offset)), temperature)
    assert evidence.hit_rate is not None
    assert evidence.hit_rate > 0.99
    assert evidence.verdict is HeadPrecision.BF16


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_float32_logits_hit_the_lattice_by_chance_only(temperature: float) -> None:
    evidence = judged(logits(), temperature)
    assert evidence.hit_rate is not None
    assert evidence.hit_rate < 0.05
    assert evidence.verdict is HeadPrecision.NOT_BF16


def test_float16_logits_are_not_called_bf16() -> None:
    for offset in (0.0, 12.0):
        assert judged(logits(offset=offset).astype(np.float16)).verdict is not HeadPrecision.BF16


def test_a_lattice_without_the_temperature_is_found_and_says_so() -> None:
    raw = top_logprobs(bf16(logits()), 1.0)
    evidence = lattice_hit_rate(raw, 0.7)
    assert evidence.verdict is HeadPrecision.BF16
    assert evidence.temperature == 1.0


def test_logits_too_small_for_the_lattice_are_unknown_and_not_float32() -> None:
    for scale in (0.02, 0.3, 0.5):
        assert judged(bf16(logits(scale=scale))).verdict is HeadPrecision.UNKNOWN
        assert judged(logits(scale=scale)).verdict is HeadPrecision.UNKNOWN


def test_a_penalty_on_some_tokens_is_not_a_verdict() -> None:
    penalised = bf16(logits())
    penalised[:, ::4] -= 0.4321
    assert judged(penalised).verdict is HeadPrecision.UNKNOWN


def test_entries_outside_the_sampler_s_filter_are_left_out() -> None:
    top = top_logprobs(bf16(logits()), 1.0)
    top[:, 3:] = -np.inf
    top[0, :] = np.nan
    evidence = lattice_hit_rate(top, 1.0)
    assert evidence.differences == 199 * 2
    assert evidence.verdict is HeadPrecision.BF16


def test_the_best_token_need_not_come_first() -> None:
    assert lattice_hit_rate(top_logprobs(bf16(logits()), 1.0)[:, ::-1], 1.0).verdict is HeadPrecision.BF16


def test_too_few_or_too_few_distinct_differences_are_unknown() -> None:
    top = top_logprobs(bf16(logits()), 1.0)
    assert lattice_hit_rate(top[:10], 1.0).verdict is HeadPrecision.UNKNOWN
    repeated = lattice_hit_rate(np.tile(top[:2], (100, 1)), 1.0)
    assert repeated.verdict is HeadPrecision.UNKNOWN
    assert "distinct" in repeated.because


@pytest.mark.parametrize("stored", [bf16, lambda values: values.astype(np.float16)])
def test_logprobs_rounded_when_stored_are_unknown(stored) -> None:  # type: ignore[no-untyped-def]
    evidence = lattice_hit_rate(stored(top_logprobs(logits(), 1.0)), 1.0)
    assert evidence.verdict is HeadPrecision.UNKNOWN
    assert "rounded" in evidence.because


@pytest.mark.parametrize(("shape", "temperature"), [((5,), 1.0), ((5, 1), 1.0), ((5, 2), 0.0), ((5, 2), np.inf)])
def test_input_that_cannot_be_judged_is_refused(shape: tuple[int, ...], temperature: float) -> None:
    with pytest.raises(ValueError, match=r"top_logprobs_TK|temperature"):
        lattice_hit_rate(np.zeros(shape), temperature)
