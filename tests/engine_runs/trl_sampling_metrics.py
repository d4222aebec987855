"""TRL's metrics of the mismatch between vLLM and trainer, made of a recording, in each release's own definition.

TRL logs them a step, over the completion's tokens of the batch, in float32. Read in trl/trainer/grpo_trainer.py of
0.23.1 (lines 1388-1391, 1513-1543), 0.25.1 (1650-1680), 1.2.0 (2051-2075, 2221-2256) and 1.16.0 (2660-2704, 2860-2895).
The caps are the defaults of GRPOConfig.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import TokenBatch


@dataclass(frozen=True)
class Definition:
    """How a release makes a ratio: one a token, clamped at the cap, or one a sequence, set to 0 above the cap."""

    by_sequence: bool
    cap: float


DEFINITIONS: Mapping[str, Definition] = {
    "0.23.1": Definition(by_sequence=False, cap=2.0),
    "0.25.1": Definition(by_sequence=False, cap=2.0),
    "1.2.0": Definition(by_sequence=True, cap=3.0),
    "1.16.0": Definition(by_sequence=True, cap=3.0),
}


def metrics_by_step(recording: Path, trl: str) -> list[dict[str, float]]:
    """Return TRL's five metrics for each step, which are the versions of the weights in their order."""
    faults, prompts = Faults(), PromptNumbers()
    (table,) = open_tables(recording)
    batches = list(table.batches(faults, prompts))
    versions = sorted({int(version) for batch in batches for version in batch.token_columns["rollout_version"]})
    return [_metrics(batches, version, DEFINITIONS[trl]) for version in versions]


def _metrics(batches: list[TokenBatch], version: int, definition: Definition) -> dict[str, float]:
    differences = [
        (batch.trainer_logprobs_T.astype(np.float32) - batch.rollout_logprobs_T.astype(np.float32))[sequence]
        for batch in batches
        for sequence in _sequences(batch, version)
    ]
    tokens = np.concatenate(differences)
    if definition.by_sequence:
        ratios = np.exp(np.array([np.sum(one, dtype=np.float32) for one in differences], dtype=np.float32))
        ratios = np.where(ratios > definition.cap, np.float32(0), ratios)
    else:
        ratios = np.minimum(np.exp(tokens), np.float32(definition.cap))
    return {
        "sampling/sampling_logp_difference/mean": float(np.mean(np.abs(tokens))),
        "sampling/sampling_logp_difference/max": float(np.max(np.abs(tokens))),
        "sampling/importance_sampling_ratio/min": float(np.min(ratios)),
        "sampling/importance_sampling_ratio/mean": float(np.mean(ratios)),
        "sampling/importance_sampling_ratio/max": float(np.max(ratios)),
    }


def _sequences(batch: TokenBatch, version: int) -> list[slice]:
    bounds = zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
    return [slice(a, b) for a, b in bounds if int(batch.token_columns["rollout_version"][a]) == version]
