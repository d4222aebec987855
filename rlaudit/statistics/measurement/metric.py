"""What a metric is: additive columns summed per prompt, and a value combined from the sums.

Two things follow from additivity. A bootstrap over prompts is one matrix product, (B, P) @ (P, J), however
many tokens there are; and a file of any size is read in chunks whose sums are added, so memory does not
grow with it.

Every metric is computed before any truncation, clamping or masking of the ratio: what a correction leaves says nothing
about the engines (NeMo-RL PR 3900: 4.536 raw, 2.14 after it).
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum, StrEnum

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.metrics import UNCLIPPED
from rlaudit.tokens.pairs import LogprobPairs

# One step of a float32 between 16 and 32, where logsumexps of language models lie. Rounding there moves all logprobs of
# an engine one way (log_softmax in float32 was measured 1e-6 off float64), so averaging over tokens does not remove it.
FLOAT32_RESOLUTION = 2.0**-19

UNBOUNDED = (-math.inf, math.inf)
NON_NEGATIVE = (0.0, math.inf)
SHARE = (0.0, 1.0)


class Clip(StrEnum):
    """What an objective clips, by the metric that counts it: tokens (PPO, GRPO) or whole sequences (GSPO)."""

    TOKENS = "ppo_clip_fraction"
    SEQUENCES = "gspo_clip_fraction"


@dataclass(frozen=True)
class ObjectiveSettings:
    """The clip bounds of the user's objective: ratio in [1 - low, 1 + high].

    PPO's defaults are those of the paper; GSPO's are the 0.02 of PipelineRL's published runs (the GSPO paper has 3e-4
    and 4e-4). A clip fraction is meaningless without them, so they are printed with it.
    """

    ppo_epsilon_low: float = 0.2
    ppo_epsilon_high: float = 0.2
    gspo_epsilon_low: float = 0.02
    gspo_epsilon_high: float = 0.02
    # The ranges that the user's objective has. Both are always measured, these alone decide a verdict.
    clips: tuple[Clip, ...] = tuple(Clip)
    # Whether the user said so; otherwise a few sequences beyond GSPO's range are no mismatch.
    stated: bool = True

    def __post_init__(self) -> None:
        if not self.clips:
            raise ValueError("an objective that clips neither tokens nor sequences has no range to judge by")
        epsilons = ("ppo_epsilon_low", "ppo_epsilon_high", "gspo_epsilon_low", "gspo_epsilon_high")
        for name in epsilons:
            epsilon = getattr(self, name)
            if not epsilon > 0 or (name.endswith("low") and epsilon > 1):
                raise ValueError(f"{name} must be above 0{', at most 1' * name.endswith('low')}: found {epsilon}")

    def reach(self, clip: Clip) -> float:
        """Return the smallest |log ratio| that is clipped, of a token or of a sequence's mean."""
        low, high = (
            (self.ppo_epsilon_low, self.ppo_epsilon_high)
            if clip is Clip.TOKENS
            else (self.gspo_epsilon_low, self.gspo_epsilon_high)
        )
        return min(math.log1p(high), -math.log1p(-low) if low < 1 else math.inf)


@dataclass(frozen=True)
class Bins:
    """One counted bin per token: `bin_T` (T,) in 0..count-1 stands for `count` columns of 0 and 1."""

    bin_T: Integers
    count: int


class One(Enum):
    """The column that is 1 in every row: its sums are known without looking at a row."""

    ONE = 1


ONE = One.ONE
Column = Floats | NDArray[np.bool_] | One
Columns = Callable[[LogprobPairs, ObjectiveSettings], "tuple[Column, ...] | Bins"]
Combine = Callable[[Floats], Floats]


class Level(StrEnum):
    """What one row of a metric's columns is."""

    TOKEN = "token"
    SEQUENCE = "sequence"


def always_available(pairs: LogprobPairs) -> str | None:
    """Return None: there is no reason why the metric could not be computed."""
    return None


@dataclass(frozen=True)
class Metric:
    """A figure of merit with everything a reader needs to compare it with a dashboard.

    What frameworks call it on their dashboards is in `curves/metric_names.yaml`.
    """

    # How it is requested.
    name: str
    # How it is printed.
    title: str
    # With `{ppo_epsilon_low}`-like fields of `ObjectiveSettings`; d is the log ratio, trainer - rollout.
    formula: str
    # "nats", "ratio", "share of tokens", ...
    unit: str
    # What the figure tells, and what it does not.
    reads: str
    # (pairs, settings) -> J additive columns, each (T,) or (S,) or ONE; or `Bins`.
    columns: Columns
    # Sums (..., J) -> value (...); NaN if the sums do not define one.
    combine: Combine
    level: Level = Level.TOKEN
    interval: IntervalMethod = IntervalMethod.STUDENTISED
    # What the value can be; its interval is cut to them.
    bounds: tuple[float, float] = UNBOUNDED
    # The mean of an event, so that an event never seen still has an upper bound.
    is_share: bool = False
    # Whether LOG_RATIO_CAP can touch it.
    exponentiates: bool = False
    # What the value cannot resolve however many tokens there are; its interval is widened by that.
    resolution: float = 0.0
    clipping: str = UNCLIPPED
    unavailable: Callable[[LogprobPairs], str | None] = always_available

    def formula_at(self, settings: ObjectiveSettings) -> str:
        """Return the formula with the numbers of `settings` in it."""
        return self.formula.format(**asdict(settings))

    def prompt_sums(self, pairs: LogprobPairs, settings: ObjectiveSettings) -> Floats:
        """Return (P, J) sums of the columns over each prompt."""
        columns = self.columns(pairs, settings)
        prompts = pairs.prompt_count
        if isinstance(columns, Bins):
            first_S = pairs.prompt_S * columns.count
            places_T = np.repeat(first_S, pairs.sequence_lengths_S) + columns.bin_T
            flat = np.bincount(places_T, minlength=prompts * columns.count)
            return flat.reshape(prompts, columns.count).astype(np.float64)
        sums_PJ = np.empty((prompts, len(columns)))
        for place, column in enumerate(columns):
            sums_PJ[:, place] = self._sums(pairs, column)
        return sums_PJ

    def _sums(self, pairs: LogprobPairs, column: Column) -> Floats:
        by_token = self.level is Level.TOKEN
        if isinstance(column, One):
            return (pairs.tokens_P if by_token else pairs.sequences_P).astype(np.float64)
        rows = pairs.tokens if by_token else pairs.sequences
        if len(column) != rows:
            raise ValueError(f"{self.name}: {len(column)} rows of columns for {rows} {self.level.value}s")
        return pairs.sum_by_prompt(pairs.sum_by_sequence(column) if by_token else column)

    def value(self, pairs: LogprobPairs, settings: ObjectiveSettings) -> float:
        """Return the metric over all of `pairs`, without an interval."""
        return float(self.combine(self.prompt_sums(pairs, settings).sum(axis=0)))


def counted(values: Floats | NDArray[np.bool_]) -> tuple[Column, ...]:
    """Return the columns of a mean: the values (N,), and a one for each."""
    return values, ONE


def mean(sums: Floats) -> Floats:
    """Return the mean, (..., 2) sums of `counted` -> (...).

    It is pooled over tokens: a mean of sequence means is biased if the length depends on the content.
    """
    return divided(sums[..., 0], sums[..., 1])


def effective_share(sums: Floats) -> Floats:
    """Return the effective sample size as a share, (Σw)² / (N Σw²), of (..., 3) sums of weight, its square, and one."""
    return divided(np.square(sums[..., 0]), sums[..., 1] * sums[..., 2])


def divided(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, NaN if the denominator is 0."""
    quotient: Floats = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient
