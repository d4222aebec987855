"""k2 of sequences: half the mean square of a sequence's mean log ratio, the scale on which GSPO clips.

Covered: how far whole sequences drift, for any clip range. By Chebyshev, a share p of sequences beyond epsilon needs
twice this figure to be at least p epsilon^2. That rules clipping out if no sequence was clipped, long before there are
enough prompts to count. Not covered: which sequences. Why not k2 of tokens: differences of tokens cancel within a
sequence, mostly; k2 is as much as 1 / length too large.
Source: Zheng et al., "Group Sequence Policy Optimization" (arXiv 2507.18071), for the quantity that is clipped.
"""

import numpy as np

from rlaudit.statistics.measurement.metric import (
    NON_NEGATIVE,
    Column,
    Level,
    Metric,
    ObjectiveSettings,
    counted,
    divided,
    mean,
)
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per sequence: half the square of its mean log ratio, one."""
    mean_log_ratio_S = divided(pairs.sequence_log_ratio_S, pairs.sequence_lengths_S.astype(float))
    return counted(0.5 * np.square(mean_log_ratio_S))


METRIC = Metric(
    name="sequence_k2",
    title="half mean squared mean log ratio of sequences",
    formula="mean over sequences (mean d)^2 / 2",
    unit="nats^2",
    reads="How far whole sequences drift: what GSPO clips, before any threshold.",
    columns=columns,
    combine=mean,
    level=Level.SEQUENCE,
    bounds=NON_NEGATIVE,
)
