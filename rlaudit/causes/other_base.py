"""Logprobs of one side with another base: log10 or log2 of a probability, where the other side has nats.

Covered: every logprob is one and the same number of times the other side's, 2.303 or 1.443, for likely tokens
and for rare ones. No temperature does that, since it changes likely tokens by another factor than rare ones.
Not covered: both sides in the same other base, whose differences look like smaller or larger ones.
"""

import math

import numpy as np

from rlaudit.causes.attribution.alignment_signature import proportion_interval
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence, once

NAME = "other-base"
# Nats of the larger side: rounding and noise of engines are a small part of it.
TELLING = 1.0
FEWEST = 64
# Of a ratio: so many tokens have it within a tenth, and their median within a fiftieth.
NEARLY_ALL, NEAR, EXACT = 0.9, 0.1, 0.02
# log10 is a smaller number than ln, log2 a larger one.
BASES = {10: math.log(10.0), 2: math.log(2.0)}


@once
def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of tokens whose logprobs have the ratio of two bases."""
    rollout_T, trainer_T = -evidence.rollout_logprobs_T, -evidence.trainer_logprobs_T
    telling_T = np.maximum(rollout_T, trainer_T) > TELLING
    telling = int(telling_T.sum())
    if telling < FEWEST:
        return NotTested(f"{telling} tokens have a probability below e^-{TELLING:g}, and {FEWEST} are needed")
    log_ratio_N = np.log(np.maximum(trainer_T[telling_T], 1e-12) / np.maximum(rollout_T[telling_T], 1e-12))
    # Of a side in base b a logprob is 1 / ln b of the other's.
    kinds = {
        (side, base): sign * math.log(ln)
        for base, ln in BASES.items()
        for side, sign in (("trainer", -1.0), ("rollout", 1.0))
    }
    side, base = min(kinds, key=lambda kind: abs(float(np.median(log_ratio_N)) - kinds[kind]))
    apart_N = np.abs(log_ratio_N - kinds[side, base])
    fits = int((apart_N < NEAR).sum())
    low, high = proportion_interval(fits, telling)
    exact = abs(float(np.median(log_ratio_N)) - kinds[side, base]) < EXACT
    return Signature(
        p_value=math.ulp(0.0) if exact else 1.0,
        effect=fits / telling,
        low=low,
        high=high,
        effect_of="tokens with the ratio of two bases",
        large=exact and fits >= NEARLY_ALL * telling,
        because=f"{side}_logprob is in base {base}: in {fits} of {telling} tokens "
        f"{'the rollout' if side == 'trainer' else 'the trainer'} has {BASES[base]:.3f} times as much, as in nats",
    )


CAUSE = Cause(
    name=NAME,
    title="Logprobs of one side in another base (log10, log2)",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="on a new batch the ratio of both logprobs differs from token to token",
    next="log both sides in nats (natural logarithm), and compare again",
)
