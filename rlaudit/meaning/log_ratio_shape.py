"""Does the log ratio have the shape that another temperature, or a filter's mask on one side, gives it?

A temperature turns logprobs about their mean: log ratio = slope * logprob + a number of the context, whichever side's
logprob is taken. Noise or other weights make a slope on the noisier side alone, where the error is in both. A mask
moves all tokens one way, by the log of the mass that it keeps; of large mismatches most is one-sided, too, and far off.
"""

import numpy as np

from rlaudit.meaning.log_statistics import ONE_SIDED, one_sidedness
from rlaudit.meaning.token_evidence import TokenEvidence, once

# Of the variance of the log ratio, on a line through the logprobs of either side. A temperature 20 % off: 0.3 to 0.9;
# other weights, dropout, rope settings and penalties: below 0.06 (simulated policies, November 2026).
LEAST_ON_A_LINE = 0.1
# Nats: a mask that keeps 0.4 or more moves tokens less. Half of the squares have to lie within.
FAR, NOT_FAR = 1.0, 0.5


@once
def follows_temperature(evidence: TokenEvidence) -> bool:
    """Return whether the log ratio lies on a line through the logprobs of either side, with one sign of the slope."""
    log_ratio_T = evidence.log_ratio_T
    sides = (evidence.rollout_logprobs_T, evidence.rollout_logprobs_T + log_ratio_T)
    if not all(np.ptp(values_T) > 0 for values_T in (log_ratio_T, *sides)):
        return False
    first, second = (float(np.corrcoef(log_ratio_T, logprobs_T)[0, 1]) for logprobs_T in sides)
    return first * second > 0 and min(first**2, second**2) >= LEAST_ON_A_LINE


def follows_mask(evidence: TokenEvidence) -> bool:
    """Return whether the log ratio is of one sign and no farther from 0 than masks move tokens."""
    squared_T = np.square(evidence.log_ratio_T)
    near = float(squared_T[squared_T < FAR**2].sum())
    sided = one_sidedness(evidence)
    return max(sided, 1.0 - sided) > ONE_SIDED and near > NOT_FAR * float(squared_T.sum())
