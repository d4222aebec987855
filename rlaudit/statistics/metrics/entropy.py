"""Mean entropy of the trainer's distribution at the sampled tokens.

Covered: how sharp the policy is where it went; differences are to be read against it (k3 / entropy
compares models).
Not covered: any mismatch by itself. Unknown where the trainer recorded none: it cannot be had from sampled
logprobs alone, whose negative mean is a cross entropy with the rollout.
Why beside mismatch metrics: it is one of the four curves that left the reference in PipelineRL's migration.
Source: the definition. PipelineRL averages the means of sequences.
"""

from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: entropy, one. Raises ValueError if there is none."""
    if pairs.entropy_T is None:
        raise ValueError("entropy_T is not recorded")
    return counted(pairs.entropy_T)


def unavailable(pairs: LogprobPairs) -> str | None:
    """Return why there is no entropy to average."""
    return "the trainer's entropy was not recorded" if pairs.entropy_T is None else None


METRIC = Metric(
    name="entropy",
    title="trainer entropy",
    formula="mean entropy of the trainer's distribution",
    unit="nats",
    reads="The scale to read differences against.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
    unavailable=unavailable,
    clipping="no ratio in it",
)
