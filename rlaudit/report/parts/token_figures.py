"""What pictures of tokens are drawn from, arm by arm."""

from collections.abc import Sequence
from typing import Annotated

from annotated_types import Ge
from typing_extensions import TypedDict

Count = Annotated[int, Ge(0)]

TokenGroup = TypedDict(
    "TokenGroup",
    {"from": float, "below": float | None, "tokens": Count, "mean": float, "median": float, "p90": float},
)
"""|d| of the tokens of one group. from and below: its ends."""


ProbabilityGroup = TypedDict(
    "ProbabilityGroup",
    {"from": float, "below": float, "tokens": Count, "rollout": float, "trainer": float, "apart": float},
)
"""Tokens by the probability that the rollout gave them."""


class Probabilities(TypedDict):
    """Probabilities of tokens. sample: [rollout, trainer] of tokens drawn at random."""

    sample: Sequence[tuple[float, float]]
    groups: Sequence[ProbabilityGroup]


class Lag(TypedDict):
    """Tokens and mean |d| by trainer version - rollout version."""

    lag: int
    tokens: Count
    mean: float


class TokenFigures(TypedDict):
    """Sums over every token that has a finite log ratio.

    block: null where the tokens are of a logged table. log_ratio: [low, high, tokens] by d = trainer - rollout logprob
    in nats; bins without tokens are left out. by_entropy, lags: null where the tokens carry none.
    """

    name: str
    block: str | None
    tokens: Count
    log_ratio: Sequence[tuple[float, float, Count]]
    by_position: Sequence[TokenGroup]
    by_entropy: Sequence[TokenGroup] | None
    probabilities: Probabilities
    lags: Sequence[Lag] | None
