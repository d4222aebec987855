"""What samples of one prompt say of the three: report against sample, and sample against trainer.

    report off, trainer not       the report is not of what the tokens were drawn from
    trainer off, report not       the trainer recomputes something else
    both off, and alike           tokens were drawn from what neither side knows: a filter where the odds of kept tokens
                                  stand, another temperature where they move
    both surely inside            nothing that would matter: a temperature within 5 %, no filter over 2 % of the mass,
                                  no top-p of 0.98, no min-p of 0.02

Fewer agreements than reported show something only if the samples were seen to report one distribution: prompts that
differ agree less as well.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.broken_groups import Broken, broken, copied
from rlaudit.meaning.siblings import Agreement, SharedDraws, agreement, shared_draws
from rlaudit.meaning.token_tests import TEMPERATURE_EFFECT
from rlaudit.tokens.token_batch import TokenBatch

# What would matter to a clip range: T=0.95 instead of 1, top-p 0.98 instead of none.
SAME_TEMPERATURE = 0.05
SAME_MASS = 0.02
WITNESSED_TOP_P = 1.0 - SAME_MASS
# Of 1/T, by a temperature so much higher; one so much lower moves it by more.
SAME_STEP = SAME_TEMPERATURE / (1.0 + SAME_TEMPERATURE)
# Where samples share a context they may end more often than elsewhere, so many times. Simulated, 2026-11, 4 to 20
# tokens each: at 1 no log without a fault is off, at 1.25 a temperature of 0.67 shows from 12 tokens on.
MOST_ENDS = 1.25
# Nats. Further apart two distributions cannot move any share, by Pinsker's inequality: sqrt(2 / 2) is all of it.
MOST_APART = 2.0
# The lightest filters that published configs set.
LIGHT_MIN_P = 0.02
LIGHT_TOP_K = 50


class Deviation(StrEnum):
    """A deviation that a report names if nothing shows."""

    TEMPERATURE = f"a temperature {100 * SAME_TEMPERATURE:.0f} % off"
    TOP_P = f"top-p {WITNESSED_TOP_P:g}"
    MIN_P = f"min-p {LIGHT_MIN_P:g}"
    TOP_K = f"top-k {LIGHT_TOP_K}"
    PENALTY = "a repetition penalty"


class Side(StrEnum):
    """Whose logprobs tokens are compared with."""

    REPORT = "the reported logprobs"
    TRAINER = "the trainer"


SPOILED = frozenset(
    {Broken.COPIES, Broken.OTHER_CONTEXTS, Broken.ONE_OUTCOME, Broken.UNEVEN, Broken.WITHOUT_ENDS, Broken.GAPS}
)


@dataclass(frozen=True, eq=False)
class Siblings:
    """Sample against what is reported, and against the trainer."""

    report: Agreement
    # None if the trainer has no logprobs.
    trainer: Agreement | None
    # Why samples of one prompt are no siblings, or may agree too little.
    broken: tuple[Broken, ...]
    # How many prompts hold copies, if not all do.
    left_out: int = 0
    # `apart_of` the draws, nats; infinity without a trainer.
    apart: float = math.inf

    @property
    def sides(self) -> dict[Side, Agreement]:
        """The sides that have logprobs."""
        both = {Side.REPORT: self.report, Side.TRAINER: self.trainer}
        return {side: agreement for side, agreement in both.items() if agreement is not None}

    @property
    def whole(self) -> bool:
        """Whether they show anything."""
        return not SPOILED & set(self.broken)

    def off(self, side: Agreement | None) -> bool:
        """Return whether the tokens were surely not drawn from this side's distribution."""
        if side is None or not self.whole or not side.step.shows(TEMPERATURE_EFFECT):
            return False
        return side.step.value > 0 or not self.broken

    @property
    def off_a_side(self) -> bool:
        """Whether either side is off."""
        return self.off(self.report) or self.off(self.trainer)

    @property
    def lean(self) -> bool:
        """Whether a side would be off only with some prompts left out."""
        return self.whole and any(side.step.leans(TEMPERATURE_EFFECT) for side in self.sides.values())

    def same(self, side: Agreement | None) -> bool:
        """Return whether no deviation that matters could have gone unseen."""
        return side is not None and not self.broken and reach_of(side) <= SAME_STEP and _uncut(side)

    @property
    def alike(self) -> bool:
        """Whether the tokens lie as far from the one side as from the other."""
        if self.trainer is None:
            return False
        if nearer_each_other(self.apart, self.report.excess.value):
            return True
        if not self.off(self.trainer):
            return False
        return self.report.step.low <= self.trainer.step.high and self.trainer.step.low <= self.report.step.high


def apart_of(log_ratio_T: Floats) -> float:
    """Return half the mean squared log ratio, nats: about the divergence of the two sides. None finite: infinity.

    A token counts at most MOST_APART: one that is far off moves no share by more than one token does.
    """
    halves_T = 0.5 * np.square(log_ratio_T[np.isfinite(log_ratio_T)])
    return float(np.minimum(halves_T, MOST_APART).mean()) if halves_T.size else math.inf


def nearer_each_other(apart: float, deviation: float) -> bool:
    """Return whether two sides are too near each other for the one to be off and the other not.

    apart: `apart_of` both, nats. deviation: of the share of draws with a property, from what the one side says. By
    Pinsker's inequality what tokens were drawn from is at least 2 deviation^2 nats away from that side; half of it is
    a margin for estimates.
    """
    return apart < deviation**2


def siblings_of(groups: tuple[TokenBatch, Integers] | None, ends_missing: float = 0.0) -> Siblings | None:
    """Return what whole groups of samples say (`tokens/sibling_groups.py`); None if no two samples share a context.

    ends_missing: the share of draws that are an end of sequence and not logged.
    """
    draws = None if groups is None else shared_draws(*groups)
    if groups is None or draws is None:
        return None
    wrong, copied_P = broken(draws, *groups), copied(draws, *groups)
    draws = draws if copied_P.all() else draws.of_prompts(~copied_P)
    report, trainer = (
        agreement(draws, logprobs_N) for logprobs_N in (draws.rollout_logprobs_N, draws.trainer_logprobs_N)
    )
    if report is None:
        return None
    apart = apart_of(draws.trainer_logprobs_N - draws.rollout_logprobs_N)
    siblings = Siblings(report, trainer, wrong, int(copied_P.sum()), apart)
    if ends_missing and not _off_without_ends(siblings, draws, ends_missing):
        return replace(siblings, broken=(*wrong, Broken.WITHOUT_ENDS))
    return siblings


def _off_without_ends(siblings: Siblings, draws: SharedDraws, ends_missing: float) -> bool:
    """Return whether a side is off by more than missing ends of sequence explain.

    Of draws that did not end a report gives p, and should give p / (1 - e).
    """
    logprobs_by_side = (draws.rollout_logprobs_N, draws.trainer_logprobs_N)
    for side, logprobs_N in zip((siblings.report, siblings.trainer), logprobs_by_side, strict=True):
        without = agreement(draws, np.minimum(logprobs_N - np.log1p(-MOST_ENDS * ends_missing), 0.0))
        if (
            without is not None
            and side is not None
            and siblings.off(side)
            and siblings.off(without)
            and without.step.value * side.step.value > 0
        ):
            return True
    return False


def reach_of(side: Agreement) -> float:
    """Return the largest relative change of 1/T that its interval leaves open."""
    return max(abs(side.step.low), abs(side.step.high))


def cut_of(side: Agreement) -> float:
    """Return the largest share of mass that a filter may have cut, unseen."""
    return min(max(side.cut.high, 0.0) + side.flat, 1.0)


@dataclass(frozen=True)
class Smallest:
    """The smallest deviations that would have been seen on every one of some sides."""

    # Relative, of 1/T.
    temperature: float
    # That a filter cuts.
    mass: float
    # Any below.
    top_p: float
    # Any above.
    min_p: float
    # Any below.
    top_k: int

    @property
    def unseen(self) -> tuple[Deviation, ...]:
        """The deviations that may have been in force, unseen."""
        may_be = {
            Deviation.TEMPERATURE: self.temperature > SAME_STEP,
            Deviation.TOP_P: self.top_p < WITNESSED_TOP_P,
            Deviation.MIN_P: self.min_p > LIGHT_MIN_P,
            Deviation.TOP_K: self.top_k <= LIGHT_TOP_K,
            # It lifts some tokens and lowers others, which may leave every sum where it is.
            Deviation.PENALTY: True,
        }
        return tuple(deviation for deviation, is_unseen in may_be.items() if is_unseen)


def smallest_of(sides: Iterable[Agreement]) -> Smallest:
    """Return the smallest deviations that each of the sides, at least one, would have shown."""
    sides = list(sides)
    return Smallest(
        temperature=max(reach_of(side) for side in sides),
        mass=max(cut_of(side) for side in sides),
        top_p=min(side.reach for side in sides),
        min_p=max(side.floor for side in sides),
        top_k=min(side.rank for side in sides),
    )


def keeps_odds(side: Agreement) -> bool:
    """Return whether a filter rather than a temperature moved the tokens: the odds of kept tokens are unchanged."""
    moved = side.odds.shows(TEMPERATURE_EFFECT)
    return side.step.value > 0 and not moved and side.odds.high < side.step.high


def prompts_needed(side: Agreement) -> int | None:
    """Return how many prompts of as many samples would make the intervals narrow enough for a match.

    None if no number does, because siblings hold too little of too many contexts.
    """
    if side.flat >= SAME_MASS / 2:
        return None
    turned = (side.step.high - side.step.low) / 2.0 / (SAME_STEP - TEMPERATURE_EFFECT / 2)
    cut = (side.cut.high - side.cut.low) / 2.0 / (SAME_MASS - side.flat)
    return int(np.ceil(side.prompts * max(1.0, turned, cut) ** 2))


def _uncut(side: Agreement) -> bool:
    """Return whether no filter cut.

    Tokens rule out a top-p or min-p that cuts less than would be seen; a top-k shows only by what it cuts.
    """
    witnessed = side.reach >= WITNESSED_TOP_P and side.floor <= LIGHT_MIN_P
    return witnessed and cut_of(side) <= SAME_MASS
