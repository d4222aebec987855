"""Logprobs that were put in: no sampler reported them, and one number stands for all of them, or bounds them.

Agent loops append the tokens of a tool with a logprob of 0 (verl's `response_logprobs += [0.0] * len(response_ids)`).
Padding and forced tokens have 0 as well, and a clip leaves its bound. A log without a loss mask counts them all.
Covered: tokens more than a nat apart, half of which have exactly one number on one side; tokens with one number that
the list of most probable tokens beside them leaves no room for. Another tokenisation has no such number. Under filters
a token that was kept alone has 0; under top-p it is not so far off, and under min-p or top-k 0 is not counted here.
Not covered: near-greedy sampling, which reports 0 by itself, and numbers that are put in with noise.
Source: verl's agent loops, which give such tokens a response_mask of 0.
"""

import math

import numpy as np
from scipy.special import bdtrc

from rlaudit.causes.attribution.alignment_signature import proportion_interval
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Signature, Stage
from rlaudit.causes.filters_not_replayed import is_requested, least_kept
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.tokens.far_tokens import FAR

NAME = "placed-logprobs"
FEWEST, FEWEST_SEQUENCES = 8, 2
LEAST_SHARE_OF_FAR = 0.5
# Of noise of any kind a tenth of the far tokens with one number would be many, even in logs of bfloat16.
SHARE_BY_CHANCE = 0.1
# Of log(p + c), where p is below c / e; and of the tokens there, so many are held by it.
ABOVE_A_FLOOR = 0.35
LEAST_SHARE_AT_A_FLOOR = 0.9
# Of two probabilities of one distribution, but for rounding.
OVERFULL = 1.05
# Below this temperature a sampled token's processed logprob is often 0 in float32.
NEARLY_GREEDY = 0.3


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of a log's far tokens that have one number on one side; or what the first look found."""
    if evidence.placed:
        return Signature(
            math.ulp(0.0), 1.0, 1.0, 1.0, "kinds of tokens with one number", True, "; ".join(evidence.placed)
        )
    if evidence.sampling.temperature < NEARLY_GREEDY or evidence.sampling.top_k == 1:
        return NotTested("near-greedy sampling reports logprobs of 0 by itself")
    floored = max((_floored(evidence, side) for side in ("rollout", "trainer")), key=lambda bound: bound.effect)
    if floored.large:
        return floored
    unlisted = _beside_its_list(evidence)
    if unlisted is not None and unlisted.large:
        return unlisted
    return _among_far_tokens(evidence)


def _among_far_tokens(evidence: TokenEvidence) -> Outcome:
    """Return the share of tokens far apart that have one number on one side."""
    if evidence.alignment is None:
        return NotTested("alignment was not looked at")
    far = evidence.alignment.far.tokens
    most, number, side = evidence.alignment.far.most()
    count = most.tokens
    if side == "rollout" and number == 0.0 and _may_be_kept_alone(evidence):
        return NotTested("a filter that was requested may keep one token alone, and then reports 0 of it")
    return _share(
        count,
        far,
        most.sequences,
        LEAST_SHARE_OF_FAR,
        "tokens more than a nat apart",
        f"{count} of the {far} tokens that are more than a nat apart have the {side} logprob {number:g}, as if put in "
        "for a tool, a template or padding, or as a bound",
    )


def _may_be_kept_alone(evidence: TokenEvidence) -> bool:
    """Return whether a filter that the trainer lacks may keep a token alone that is far from certain."""
    return is_requested(evidence) and least_kept(evidence.sampling) < math.exp(-FAR)


def _floored(evidence: TokenEvidence, side: str) -> Signature:
    """Return whether one side has a lower bound, as of log(p + c), at which it stays if the other side goes below."""
    ours_T, others_T = evidence.rollout_logprobs_T, evidence.trainer_logprobs_T
    ours_T, others_T = (ours_T, others_T) if side == "rollout" else (others_T, ours_T)
    floor = float(ours_T.min(initial=0.0))
    below_T = others_T < floor - FAR
    below, sequences = int(below_T.sum()), len(np.unique(evidence.sequence_T[below_T]))
    held = int((below_T & (ours_T < floor + ABOVE_A_FLOOR)).sum())
    return _share(
        held,
        below,
        sequences,
        LEAST_SHARE_AT_A_FLOOR,
        "tokens below a bound",
        f"the {side} logprob is never below {floor:.4g}, which it has in {held} of the {below} tokens that are less "
        f"likely on the other side, down to {others_T.min(initial=0.0):.4g}; a clip or log(p + {math.exp(floor):.1g}) "
        "does that: log it without",
    )


def _beside_its_list(evidence: TokenEvidence) -> Signature | None:
    """Return the share with one number among tokens whose list has no room for them; None without lists.

    The probabilities of a token and of the first choice of its list, if that is another token, sum to 1 at most. This
    shows numbers that both sides have.
    """
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs", "token_id")):
        return None
    ids_TK, logprobs_TK = evidence.tops["rollout_top_ids"], evidence.tops["rollout_top_logprobs"]
    if not logprobs_TK.shape[1]:
        return None
    rows, best_T = np.arange(evidence.tokens), np.argmax(logprobs_TK, axis=1)
    sum_T = np.exp(evidence.rollout_logprobs_T) + np.exp(logprobs_TK[rows, best_T])
    overfull_T = (ids_TK[rows, best_T] != evidence.token_id_T) & (sum_T > OVERFULL)
    if not overfull_T.any():
        return None
    numbers, counts = np.unique(evidence.rollout_logprobs_T[overfull_T], return_counts=True)
    number, count, total = float(numbers[counts.argmax()]), int(counts.max()), int(overfull_T.sum())
    of_it_T = overfull_T & (evidence.rollout_logprobs_T == number)
    return _share(
        count,
        total,
        len(np.unique(evidence.sequence_T[of_it_T])),
        LEAST_SHARE_OF_FAR,
        "tokens without room in their list",
        f"{count} of the {total} tokens whose probability and that of another first choice exceed 1 have the rollout "
        f"logprob {number:g}: it was put in, as for the tokens of a tool, a template or padding",
    )


def _share(count: int, total: int, sequences: int, least: float, effect_of: str, because: str) -> Signature:
    """Return a share of tokens as a signature, large from `least` on in enough tokens and sequences."""
    low, high = proportion_interval(count, max(total, 1))
    return Signature(
        p_value=max(float(bdtrc(count - 1, total, SHARE_BY_CHANCE)), math.ulp(0.0)) if count else 1.0,
        effect=count / max(total, 1),
        low=low,
        high=high,
        effect_of=effect_of,
        large=count >= FEWEST and sequences >= FEWEST_SEQUENCES and count >= least * total,
        because=because,
    )


CAUSE = Cause(
    name=NAME,
    title="Logprobs that were put in (tool output, forced, padded or clipped tokens)",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="the tokens that the policy sampled differ as much",
    next="log what both sides computed for these tokens, or leave them out of the loss on both sides (loss_mask 0); "
    "compare again",
)
