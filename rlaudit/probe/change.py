"""A sampling parameter, and what logprobs and draws are if a server applies it.

A context is requested twice: with every parameter neutral, and with one changed. What the change does to log
probabilities is known from the sampler's definition (vLLM v1/sample/sampler.py), up to a constant that only the whole
vocabulary knows. Two questions have answers of their own: whether the *report* has it, and whether *draws* follow it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.discover import discover
from rlaudit.meaning.candidates import Semantics
from rlaudit.probe.answer import Position

# Log likelihood ratio, nats, from which draws decide: one in 1,100 by chance.
DECIDES = 7.0
# Of one prompt, nats: none decides against all others, as noise or equal logits may exchange two ranks.
MOST = 30.0
# A prediction is known from another if it is so many tolerances from it.
APART = 4.0


@dataclass(frozen=True, eq=False)
class Context:
    """The next token of a prompt with every parameter neutral: K alternatives, the likeliest first."""

    tokens: tuple[str, ...]
    logprobs_K: Floats
    # Which alternatives stand in what was generated before, and which there or in the prompt.
    generated_K: NDArray[np.bool_]
    before_K: NDArray[np.bool_]
    # Which one a bias is put on.
    biased_K: NDArray[np.bool_]

    @property
    def likeliest(self) -> float:
        """The share of the likeliest token."""
        return float(np.exp(self.logprobs_K[0]))


# (context, value) -> log weight of each alternative: -inf if it is cut, NaN if it falls by an unknown amount. None if
# noise decides there what is cut.
Applied = Callable[[Context, Any], Floats | None]


@dataclass(frozen=True)
class Change:
    """One parameter, by vLLM's name."""

    name: str
    # The values that are requested in a context, and those that servers put in by themselves.
    values: Callable[[Context], Sequence[Any]]
    usual: Sequence[Any]
    applied: Applied
    # Whether it takes tokens out, so that the weights of the others add up to 1 as they are.
    cuts: bool = False
    # Whether it looks at tokens that stand before: those that were generated, or those of the prompt as well.
    looks_back: Literal["", "generated", "prompt"] = ""
    # Whether a request names the token that it changes, by its id.
    by_id: bool = False
    # Whether its value shows, and not only that it is applied.
    sized: bool = True


@cache
def changes() -> tuple[Change, ...]:
    """Return every parameter that is asked about, one a file in `changes/`."""
    # Its files import this one.
    from rlaudit.probe import changes as files

    offers = discover(files, "CHANGE", Change)
    # As a meaning lists them.
    return tuple(offers[field.name] for field in fields(Semantics) if field.name in offers)


def context_of(
    position: Position,
    listed: int,
    generated: Iterable[str] = (),
    in_prompt: Iterable[str] = (),
    biased: str | None = None,
) -> Context:
    """Return the context of a position that was requested with every parameter neutral.

    listed: how many alternatives were requested.
    """
    ranked = position.ranked(listed)
    tokens = tuple(token for token, _ in ranked)

    def among(names: Iterable[str]) -> NDArray[np.bool_]:
        wanted = set(names)
        return np.array([token in wanted for token in tokens], dtype=np.bool_)

    logprobs_K = np.array([logprob for _, logprob in ranked], dtype=np.float64)
    return Context(tokens, logprobs_K, among(generated), among((*generated, *in_prompt)), among((biased or "",)))


@dataclass(frozen=True)
class Fit:
    """How far a report is from what it is with a change and without it, nats; inf if a token contradicts it."""

    without: float
    applied: float

    def shows(self, tolerance: float) -> bool | None:
        """Return whether the report has the change, None if neither or both fit."""
        if self.without <= tolerance and self.applied > APART * tolerance:
            return False
        if self.applied <= tolerance and self.without > APART * tolerance:
            return True
        return None

    def is_neither(self, tolerance: float) -> bool:
        """Return whether the report is surely neither."""
        return min(self.without, self.applied) > APART * tolerance


def report_fit(context: Context, changed: Position, weights_K: Floats, cuts: bool) -> Fit:
    """Return how the report of a changed request fits. weights_K: as `Applied`."""
    reported_K = np.array([changed.top.get(token, np.nan) for token in context.tokens])
    gone_K = np.array([token in changed.cut for token in context.tokens])
    here_K = np.isfinite(reported_K)
    if here_K.sum() < 2 and not gone_K.any():
        return Fit(0.0, 0.0)
    without = np.inf if gone_K.any() else _far((reported_K - context.logprobs_K)[here_K])
    known_K = here_K & np.isfinite(weights_K)
    contradicted = bool((here_K & np.isneginf(weights_K)).any() or (gone_K & np.isfinite(weights_K)).any())
    if contradicted or not known_K.any():
        return Fit(without, np.inf)
    off_K = reported_K - weights_K
    shift = 0.0 if cuts else float(np.median(off_K[known_K]))
    falls_K = here_K & np.isnan(weights_K)
    fallen_K = (reported_K - context.logprobs_K - shift)[falls_K]
    rises = float(np.max(fallen_K, initial=-np.inf))
    # A token that must fall and does not contradicts the change by what is lacking.
    lacking = max(0.0, rises + 0.1) if falls_K.any() else 0.0
    return Fit(without, max(_far(off_K[known_K] - shift), lacking))


def _far(differences: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(differences))))


def draws_ratio(context: Context, drawn: Sequence[str], weights_K: Floats, cuts: bool) -> float:
    """Return the log likelihood ratio, nats, of draws with a change applied against without it, at most MOST.

    Alternatives that were not listed are known to be cut only if the change cuts; else draws among the listed decide.
    """
    place = {token: index for index, token in enumerate(context.tokens)}
    listed = np.array([place[token] for token in drawn if token in place], dtype=np.int64)
    outside = len(drawn) - len(listed)
    fallen_K = np.isnan(weights_K)
    if fallen_K.any():
        return _fewer_than(context.logprobs_K, fallen_K, listed)
    if cuts and (outside or np.isneginf(weights_K[listed]).any()):
        return -MOST
    without_K = context.logprobs_K if cuts else context.logprobs_K - np.logaddexp.reduce(context.logprobs_K)
    applied_K = weights_K if cuts else weights_K - np.logaddexp.reduce(weights_K)
    return float(np.clip(np.sum(applied_K[listed] - without_K[listed]), -MOST, MOST))


def _fewer_than(logprobs_K: Floats, fallen_K: NDArray[np.bool_], listed: NDArray[np.int64]) -> float:
    """Return the ratio if some alternatives fall by an unknown amount: their share is at most half of its odds."""
    share = float(np.exp(logprobs_K)[fallen_K].sum() / np.exp(logprobs_K).sum())
    half = share / (2.0 - share)
    hits = int(fallen_K[listed].sum())
    misses = len(listed) - hits
    if not 0 < share < 1:
        return 0.0
    ratio = hits * float(np.log(half / share)) + misses * float(np.log((1 - half) / (1 - share)))
    return float(np.clip(ratio, -MOST, MOST))
