"""Histories of one stack: runs that differ in nothing but their seeds, with noise that the gates do not know of."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from synthetic_runs import Floats, Noise, seeds

from rlaudit.curves.curve import Curve, Run

KEY = "policy/rollout_train_logprobs_abs_diff_mean"
LEVEL, SIZE, STEPS = 0.0167, 0.08, 100


@dataclass(frozen=True)
class History:
    """noise: of the steps and of how seeds part. between: how far the levels of runs lie apart. spike: the share of
    steps that are eight times as high.
    """

    noise: Noise
    between: float = 0.0
    spike: float = 0.0

    def __str__(self) -> str:
        extra = f", levels {self.between:g} apart" * bool(self.between) + f", spikes {self.spike:g}" * bool(self.spike)
        return f"{self.noise}{extra}"

    def values(self, count: int, generator: np.random.Generator) -> Floats:
        """(count, STEPS), all positive."""
        steps = np.maximum(1 + SIZE * seeds(self.noise, "flat", STEPS, count, generator), 0.05)
        levels = np.exp(self.between * generator.standard_normal((count, 1)))
        spikes = np.where(generator.random(steps.shape) < self.spike, 8.0, 1.0)
        return LEVEL * levels * steps * spikes


HISTORIES = [
    History(Noise("white"), between=0.03),
    History(Noise("white"), between=0.03, spike=0.05),
    History(Noise("heavy tails"), between=0.03),
    History(Noise("spikes"), between=0.03),
    History(Noise("ar0.9")),
    History(Noise("white", "random walk", 1.0)),
]


def run_of(values: Floats, name: str = "run", key: str = KEY) -> Run:
    """What a reader makes of a log of these values, from step 0 on."""
    finite = np.isfinite(values)
    steps = np.arange(len(values))
    curve = Curve(key, steps[finite], values[finite], tuple(steps[~finite].tolist()))
    return Run(name, (Path(name),), "simulated", "step", {key: curve}, ())
