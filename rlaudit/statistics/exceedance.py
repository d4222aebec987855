"""Are more than half of the steps beyond a limit? Evidence that may be looked at after every step, for ever.

Hypothesis: after any past, the next step is beyond the limit with a probability of a half at most. A share of a capital
is bet against it at even odds. Bets on a fair or unfavourable coin win nothing on average, so the capital is a
supermartingale: it begins at 1 and ever reaches 1 / alpha with a probability of alpha at most (Ville's inequality),
however often it is looked at and however steps depend on each other. The capital is the evidence.

The best share to bet, and the step to begin at, are unknown: the capital is divided evenly over BETS. Of each part 1 /
(n (n + 1)) begins to bet at step n, and lies idle before. So a run that was well for a thousand steps is reported some
thirty steps after it turned, and one that began badly after eight (alpha of 0.05).

One wild step, however wild, counts as one step. Sources: Ville, "Étude critique de la notion de collectif" (1939);
Shafer, "Testing by betting" (2021); Shin, Ramdas & Rinaldo, "E-detectors" (2023) for the steps from which to bet.
"""

import numpy as np

from rlaudit.arrays import Floats

# Shares of the capital. The most telling bet against a coin that shows p is 2 p - 1.
BETS: Floats = np.array([0.2, 0.4, 0.6, 0.8, 0.95])
# Evidence beyond all doubt; more would overflow.
MOST = 1e200


class Exceedance:
    """The evidence of one sequence of steps."""

    def __init__(self) -> None:
        self._capital_B = np.zeros(len(BETS))
        self.evidence = 1.0
        self.steps = 0

    def add(self, beyond: bool) -> float:
        """Count one more step and return the evidence against the hypothesis so far: 1 if there is none."""
        self.steps += 1
        begins = 1.0 / (self.steps * (self.steps + 1))
        self._capital_B = np.minimum((self._capital_B + begins) * (1.0 + BETS if beyond else 1.0 - BETS), MOST)
        self.evidence = float(self._capital_B.mean()) + 1.0 / (self.steps + 1)
        return self.evidence
