"""What makes samples of one prompt no siblings: they were not drawn one by one from one distribution.

Covered: copies (one seed for a whole group, a completion logged twice, greedy sampling); other prompts under one name
(another chat template, tools or images), which report other logprobs for one token in what looks like one context;
groups chosen by their outcome, which leave out those in which every sample was right, and so those that agree most;
samples chosen by theirs, which are sharper than what they were drawn from.
Not covered: a choice that was not logged, where it leaves as many samples of every prompt and numbers them anew;
weights updated in flight where no version was logged, whose small changes pull agreement a little below what is
reported.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.siblings import SharedDraws
from rlaudit.tokens.token_batch import TokenBatch

# Two separate samples go on agreeing for so many nats once in e^20 pairs.
COPIED_NATS = 20.0
# If that many prompts have copies, there are others whose copies end too soon to be as sure.
FEWEST_COPIED = 3
# A sampler twice as sharp as its report agrees for so long in a few prompts of a thousand: more than this are copies.
COPIED_SHARE = 0.1
# A full duplicate is evidence if its probability by chance is below this, and if most samples are duplicates.
CHANCE_OF_A_TWIN = 0.125
TWINS_SHARE = 0.5
# Far beyond the noise of an FP8 engine, whose logits are off by tenths.
OTHER_NATS = 0.5
OTHER_SHARE = 0.05
# Tokens surer than this are reported alike in any context.
LEAST_ROOM_TO_DIFFER = 0.1
# Fewer tokens that two samples drew in one context cannot show that it is one.
FEWEST_SHARED = 20
# What is reported for the tokens of one context sums to 1 at most, but for noise.
OVERFULL, OVERFULL_SHARE = 1.05, 0.01
# One prompt in twenty with samples of another makes this share overfull, and tokens look flatter by 2 %; so does an
# engine whose logits are off by tenths.
DOUBTFUL_SHARE, FEWEST_OVERFULL = 0.002, 3
FEWEST_GROUPS = 20
# A few samples of a log are always lost: aborted, too long, not scored.
UNEVEN_SHARE = 0.1
# Groups with a sample numbered beyond their size; numbers up to so many times the largest group are within one.
GAPS_SHARE, MOST_NUMBERS = 0.5, 4


class Broken(StrEnum):
    """Why a group of samples cannot be used, or only to show one direction."""

    COPIES = (
        "samples of one prompt have the same tokens for longer than separate draws do. Possible reasons: one seed "
        "for all, one completion logged twice, a greedy sampler, or words that were not drawn"
    )
    OTHER_CONTEXTS = (
        "samples of one prompt have different reported distributions, so the engine used other prompts or weights "
        "for some"
    )
    DOUBTFUL_CONTEXTS = (
        "samples of one prompt may have different reported distributions, so rare agreement between them proves nothing"
    )
    UNSEEN_CONTEXTS = (
        "samples of one prompt have too few tokens in common to show whether their reported distributions are the same"
    )
    CHOSEN = "groups of samples were chosen by their outcome, since no group is all right or all wrong"
    ONE_OUTCOME = (
        "all samples have the same reward. If they were chosen by it, their tokens look likelier than to the sampler"
    )
    WITHOUT_ENDS = "the end token is not logged. This may be why the other tokens look so sure: log the end token"
    GAPS = (
        "some samples of a prompt are missing, by their ids. If samples were dropped by length, likelihood or ratio, "
        "the tokens of the rest look likelier than they were to the sampler"
    )
    UNEVEN = (
        "prompts have different numbers of samples and no rewards, so samples may have been dropped by their outcome"
    )


def broken(draws: SharedDraws, batch: TokenBatch, group_S: Integers) -> tuple[Broken, ...]:
    """Return what is wrong with the groups of one table; batch, group_S: what the draws were found in."""
    others, shared, overfull_C = _contexts(draws)
    other = bool(others > OTHER_SHARE or overfull_C.mean() > OVERFULL_SHARE)
    checks = {
        # If reports of one context differ, duplicates prove nothing.
        Broken.COPIES: not other
        and (copied(draws, batch, group_S).mean() > COPIED_SHARE or _twins(batch, group_S).share > TWINS_SHARE),
        Broken.OTHER_CONTEXTS: other,
        Broken.DOUBTFUL_CONTEXTS: not other
        and overfull_C.mean() > DOUBTFUL_SHARE
        and overfull_C.sum() >= FEWEST_OVERFULL,
        # The probabilities of tokens that no other sample shares can still add up to more than 1.
        Broken.UNSEEN_CONTEXTS: shared < FEWEST_SHARED and not other,
        Broken.GAPS: _gaps(batch, group_S),
        **_choices(batch, group_S),
    }
    return tuple(kind for kind, is_broken in checks.items() if is_broken)


def copied(draws: SharedDraws, batch: TokenBatch, group_S: Integers) -> NDArray[np.bool_]:
    """Return (P,) prompts in which two samples agree for longer than chance lets them, or to their very end."""
    longest_P = np.zeros(draws.prompts)
    np.maximum.at(longest_P, draws.prompt_N, draws.surprise_N)
    twins = _twins(batch, group_S)
    _, prompt_S = np.unique(batch.prompt_S, return_inverse=True)
    np.maximum.at(longest_P, prompt_S[twins.has_S], twins.surprise_S[twins.has_S])
    copied_P = longest_P > COPIED_NATS
    if copied_P.sum() >= FEWEST_COPIED:
        copied_P[prompt_S[twins.has_S & twins.telling_S]] = True
    return copied_P


@dataclass(frozen=True, eq=False)
class _Twins:
    """Samples with a twin."""

    # Nats of a sample's tokens.
    surprise_S: Floats
    # Whether another sample of its group is the same to the end.
    has_S: NDArray[np.bool_]
    # Whether a twin by chance is improbable.
    telling_S: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """The share, among samples that tell, of those with a twin: copies of any length."""
        return float(self.has_S[self.telling_S].mean()) if self.telling_S.any() else 0.0


def _twins(batch: TokenBatch, group_S: Integers) -> _Twins:
    surprise_T = np.where(batch.counts_T, -np.nan_to_num(batch.rollout_logprobs_T), 0.0)
    surprise_S = np.add.reduceat(surprise_T, batch.offsets[:-1])
    depth_T = np.arange(batch.tokens) - batch.offsets[batch.sequence_T]
    # One number for the tokens of a sample in their order; wraps around.
    mixed_T = (batch.token_id_T.astype(np.uint64) + np.uint64(1)) * _odd_numbers(int(depth_T.max()) + 1)[depth_T]
    tokens_S = np.add.reduceat(mixed_T, batch.offsets[:-1])
    _, group_S, size_G = np.unique(group_S, return_inverse=True, return_counts=True)
    _, same_S, count = np.unique(
        np.stack([group_S, tokens_S.view(np.int64)]), axis=1, return_inverse=True, return_counts=True
    )
    return _Twins(surprise_S, count[same_S] > 1, (size_G[group_S] - 1) * np.exp(-surprise_S) < CHANCE_OF_A_TWIN)


def _odd_numbers(many: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**63, many, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _contexts(draws: SharedDraws) -> tuple[float, int, NDArray[np.bool_]]:
    """Return the share of tokens with reports far apart, how many were compared, and (C,) the overfull contexts.

    Compared are tokens that several samples drew in one context. A context is overfull if the probabilities that are
    reported for its tokens sum to more than 1.
    """
    order = np.lexsort((draws.token_N, draws.context_N))
    context_N, logprobs_N = draws.context_N[order], np.nan_to_num(draws.rollout_logprobs_N[order])
    firsts = np.flatnonzero(np.append(True, (np.diff(context_N) != 0) | (np.diff(draws.token_N[order]) != 0)))
    low_R, high_R = np.minimum.reduceat(logprobs_N, firsts), np.maximum.reduceat(logprobs_N, firsts)
    several = np.diff(np.append(firsts, len(order))) > 1
    telling = several & (-np.expm1(low_R) > LEAST_ROOM_TO_DIFFER)
    apart = float((high_R - low_R > OTHER_NATS)[telling].mean()) if telling.any() else 0.0
    _, context_R = np.unique(context_N[firsts], return_inverse=True)
    return apart, int(several.sum()), np.bincount(context_R, np.exp(low_R)) > OVERFULL


def _gaps(batch: TokenBatch, group_S: Integers) -> bool:
    """Return whether samples are numbered, within their group or over the log, and many groups lack numbers between.

    Numbers that other groups have are missing from none: requests of several prompts may be numbered in turn.
    """
    number_S = _numbers(batch)
    _, group_S, size_G = np.unique(group_S, return_inverse=True, return_counts=True)
    if number_S is None or len(size_G) < FEWEST_GROUPS:
        return False
    first_G, last_G = np.full(len(size_G), number_S.max()), np.zeros(len(size_G), dtype=np.int64)
    np.minimum.at(first_G, group_S, number_S)
    np.maximum.at(last_G, group_S, number_S)
    if number_S.min() in (0, 1) and number_S.max() <= MOST_NUMBERS * size_G.max():
        return bool((last_G - number_S.min() >= size_G).mean() > GAPS_SHARE)
    span_G, numbers = last_G - first_G + 1, np.unique(number_S)
    there_G = np.searchsorted(numbers, last_G, side="right") - np.searchsorted(numbers, first_G)
    return bool(span_G.max() <= MOST_NUMBERS * size_G.max() and (span_G > there_G).mean() > GAPS_SHARE)


def _numbers(batch: TokenBatch) -> Integers | None:
    """Return (S,) the number of each sample: its name, or what this ends in; None if some end in none."""
    endings = [re.search(r"\d{1,18}$", str(name)) for name in batch.sample_names_S.tolist()]
    numbers = [int(ending.group()) for ending in endings if ending is not None]
    return np.array(numbers, dtype=np.int64) if numbers and len(numbers) == len(endings) else None


def _choices(batch: TokenBatch, group_S: Integers) -> dict[Broken, bool]:
    """Return whether groups or samples look chosen, by their rewards, or by their numbers if there are no rewards."""
    _, group_S, size_G = np.unique(group_S, return_inverse=True, return_counts=True)
    reward_S = batch.sequence_columns.get("reward")
    if reward_S is None or np.isnan(reward_S).any():
        usual = np.bincount(size_G).argmax()
        return {Broken.UNEVEN: bool((size_G != usual).mean() > UNEVEN_SHARE)}
    outcomes = len(np.unique(reward_S))
    low, high = np.full(len(size_G), np.inf), np.full(len(size_G), -np.inf)
    np.minimum.at(low, group_S, reward_S)
    np.maximum.at(high, group_S, reward_S)
    none_of_one_kind = len(size_G) >= FEWEST_GROUPS and bool((low < high).all())
    return {Broken.CHOSEN: outcomes == 2 and none_of_one_kind, Broken.ONE_OUTCOME: outcomes == 1}
