"""Training runs with known noise, made by other means than the noise model that is tested on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRENDS = {
    "flat": lambda share: 0.0 * share,
    "saturating": lambda share: 15.0 * (1.0 - np.exp(-5.0 * share)),
    "late rise": lambda share: 20.0 / (1.0 + np.exp(-12.0 * (share - 0.4))),
    "fast drop": lambda share: 8.0 * np.exp(-20.0 * share),
}


@dataclass(frozen=True)
class Noise:
    """step: white, ar0.5, ar0.9, heavy tails (Student t, 3 degrees), spikes (lognormal), growing; of standard
    deviation 1. drift: how seeds part: none, bounded (back at their mean within a tenth of the run), or a random walk
    that ends `drift_size` standard deviations away.
    """

    step: str
    drift: str = "none"
    drift_size: float = 0.0

    def __str__(self) -> str:
        return self.step if self.drift == "none" else f"{self.step}, {self.drift} drift of {self.drift_size:g}"


def seeds(noise: Noise, trend: str, length: int, count: int, generator: np.random.Generator) -> Floats:
    """(count, length) runs that differ in nothing but their seed."""
    share = np.arange(length) / length
    return TRENDS[trend](share) + np.stack([_one(noise, length, generator) for _ in range(count)])


def changed(candidate: Floats, at: int, size: float, ramp: int = 1) -> Floats:
    """The candidate with `size` added from `at` on, at once or over `ramp` steps."""
    return candidate + size * np.clip((np.arange(len(candidate)) - at + 1) / ramp, 0.0, 1.0)


def _one(noise: Noise, length: int, generator: np.random.Generator) -> Floats:
    return _step_noise(noise.step, length, generator) + _drift(noise, length, generator)


def _step_noise(kind: str, length: int, generator: np.random.Generator) -> Floats:
    if kind == "heavy tails":
        return generator.standard_t(3, length) / np.sqrt(3.0)
    if kind == "spikes":
        return (generator.lognormal(0.0, 1.0, length) - np.exp(0.5)) / 2.16 + 1.0
    white = generator.standard_normal(length)
    if kind == "growing":
        return white * np.linspace(0.3, 1.7, length)
    if kind.startswith("ar"):
        return _ar1(white, float(kind[2:]))
    return white


def _drift(noise: Noise, length: int, generator: np.random.Generator) -> Floats:
    if noise.drift == "bounded":
        return noise.drift_size * _ar1(generator.standard_normal(length), float(np.exp(-10.0 / length)))
    if noise.drift == "random walk":
        return noise.drift_size * np.cumsum(generator.standard_normal(length)) / np.sqrt(length)
    return np.zeros(length)


def _ar1(white: Floats, memory: float) -> Floats:
    found = np.empty_like(white)
    found[0] = white[0]
    for place in range(1, len(white)):
        found[place] = memory * found[place - 1] + np.sqrt(1.0 - memory**2) * white[place]
    return found
