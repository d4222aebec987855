"""Prompt logprobs: whether they hold the temperature, and how far they are from the logprobs of sampling.

A trainer that sends finished sequences as prompts for old or reference logprobs takes them for those of the sampler.
V0 divides by the temperature there, too; V1 takes prompt logprobs from the unprocessed logits under every
`logprobs_mode` (`rlaudit explain prompt-logprobs-recompute`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlaudit.statistics.resample import Resampled, cluster_weights, ratio, resampled

# Of the factor by which the temperature moves logits, |1 / T - 1|: the logprobs of sampled tokens move by a third to a
# half of it in nats (T = 0.7, SmolLM2), and those of two equal requests in bfloat16 by .003.
SHOWS = 0.05


def holds_temperature(sequences: Sequence[Mapping[str, Any]], temperature: float) -> bool:
    """Return whether prompt logprobs at this temperature differ from those at 1, as logprobs of the sampler do."""
    moved, tokens = (sum(sequence[name] for sequence in sequences) for name in ("by_temperature", "tokens"))
    return bool(moved > SHOWS * abs(1.0 / temperature - 1.0) * tokens)


def from_sampled(sequences: Sequence[Mapping[str, Any]]) -> Resampled:
    """Return the mean absolute difference from the logprobs of sampling, in nats, resampled by sequences."""
    sums_SJ = np.array([[sequence["from_sampled"], sequence["tokens"]] for sequence in sequences], dtype=np.float64)
    return resampled(sums_SJ, cluster_weights(len(sums_SJ)), ratio)
