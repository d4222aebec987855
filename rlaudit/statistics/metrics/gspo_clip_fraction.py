"""The share of sequences GSPO would clip at the user's epsilons, from mismatch alone.

Covered: the sequence's geometric mean ratio exp(mean d) outside [1 - low, 1 + high]. Not covered: whether
the clip binds.
Why sequences and not tokens: the GSPO clip acts on all tokens of a sequence at once. PipelineRL expands
the indicator to tokens and averages it per sequence again, which is the same number.
Source: Zheng et al., "Group Sequence Policy Optimization" (arXiv 2507.18071).
"""

from rlaudit.statistics.measurement.metric import (
    SHARE,
    Column,
    Level,
    Metric,
    ObjectiveSettings,
    counted,
    divided,
    mean,
)
from rlaudit.statistics.metrics.ppo_clip_fraction import is_clipped
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per sequence: clipped, one."""
    mean_log_ratio_S = divided(pairs.sequence_log_ratio_S, pairs.sequence_lengths_S.astype(float))
    return counted(is_clipped(mean_log_ratio_S, settings.gspo_epsilon_low, settings.gspo_epsilon_high))


METRIC = Metric(
    name="gspo_clip_fraction",
    title="GSPO clip fraction",
    formula="mean over sequences [exp(mean d) < 1 - {gspo_epsilon_low:g} or > 1 + {gspo_epsilon_high:g}]",
    unit="share of sequences",
    reads="What the objective would clip although nothing was learned yet.",
    columns=columns,
    combine=mean,
    level=Level.SEQUENCE,
    bounds=SHARE,
    is_share=True,
    clipping="counts what clipping would change; the ratio itself is unclipped",
)
