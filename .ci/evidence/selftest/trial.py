"""One blind trial: a world is planted and sealed, its observation is judged, and only then is the label read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from selftest.blind import Label, judge, planted
from worlds.ground import Ground

from rlaudit.layers import Verdict


@dataclass(frozen=True)
class Trial:
    """A label, what was named, and why."""

    label: Label
    named: frozenset[str]
    clean: bool
    because: str

    @property
    def wrong(self) -> frozenset[str]:
        """Causes that were named and not planted."""
        return self.named - set(self.label.causes)

    @property
    def recalled(self) -> bool:
        """Whether all that was planted was named; for a clean world, whether it was called clean."""
        return set(self.label.causes) <= self.named if self.label.causes else self.clean


def blind_trials(ground: Ground, labels: Sequence[Label], floor_k2: float, rng: np.random.Generator) -> list[Trial]:
    """One trial for each label, in an order that tells nothing."""
    trials = []
    for place in rng.permutation(len(labels)).tolist():
        observation = planted(ground, labels[place], floor_k2, rng)
        found = judge(observation)
        clean = not found.names and found.verdict is Verdict.MATCH
        trials.append(Trial(labels[place], found.names, clean, found.because))
    return trials
