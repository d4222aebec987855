"""Mean absolute log ratio: the figure most projects log, robust and comparable between them.

Covered: the bulk of the difference, in nats per token. Without an exponential no single token decides it.
Not covered: its cause. It is never 0 between two engines; compare it with the noise of repeats before
calling it large.
Why not the maximum: a maximum grows with the number of tokens and cannot be compared.
Source: the definition. PipelineRL averages the means of sequences. PipelineRL and open-instruct take the trainer's
logprobs from the current policy, which includes staleness.
"""

from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: |log ratio|, one."""
    return counted(pairs.abs_log_ratio_T)


METRIC = Metric(
    name="mean_abs_log_ratio",
    title="mean |log ratio|",
    formula="mean |d|",
    unit="nats",
    reads="The typical difference per token; 0 only for bitwise equal logprobs.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
)
