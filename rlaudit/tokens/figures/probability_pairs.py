"""Rollout probability against trainer probability of the same token: a sample to draw, and means of all to read."""

from typing import Any

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.figures.four_digits import four_digits

DRAWN = 300
GROUPS = 10


class ProbabilityPairs:
    """Means in ten groups of the rollout's probability, and `DRAWN` tokens, each as likely as any other."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._drawn = np.empty((0, 2))
        self._tokens = np.zeros(GROUPS, dtype=np.int64)
        self._sums = np.zeros((3, GROUPS))

    def add(self, rollout_logprobs_T: Floats, trainer_logprobs_T: Floats) -> None:
        """Logprobs in nats."""
        pairs_T2 = np.exp(np.minimum(np.stack([rollout_logprobs_T, trainer_logprobs_T], axis=1), 0.0))
        group_T = np.minimum((pairs_T2[:, 0] * GROUPS).astype(np.int64), GROUPS - 1)
        self._tokens += np.bincount(group_T, minlength=GROUPS)
        apart_T = np.abs(pairs_T2[:, 1] - pairs_T2[:, 0])
        for place, values_T in enumerate((pairs_T2[:, 0], pairs_T2[:, 1], apart_T)):
            self._sums[place] += np.bincount(group_T, values_T, minlength=GROUPS)
        # Every token gets a random number, and the smallest numbers of all batches are drawn.
        own = self._random.random(len(pairs_T2))
        few = own < (self._keys.max() if self._keys.size == DRAWN else 1.0)
        keys, drawn = np.concatenate([self._keys, own[few]]), np.concatenate([self._drawn, pairs_T2[few]])
        kept = np.argsort(keys, kind="stable")[:DRAWN]
        self._keys, self._drawn = keys[kept], drawn[kept]

    def as_dict(self) -> dict[str, Any]:
        """`sample`: [rollout, trainer] of each drawn token; `groups`: means of all tokens."""
        return {
            "sample": [[four_digits(rollout), four_digits(trainer)] for rollout, trainer in self._drawn.tolist()],
            "groups": [
                {
                    "from": group / GROUPS,
                    "below": (group + 1) / GROUPS,
                    "tokens": int(self._tokens[group]),
                    **{
                        name: four_digits(self._sums[place, group] / self._tokens[group])
                        for place, name in enumerate(("rollout", "trainer", "apart"))
                    },
                }
                for group in np.flatnonzero(self._tokens).tolist()
            ],
        }
