"""The distribution that the returned logprobs of a vLLM version belong to: most semantic rules start from it.

vLLM's side of it is resolution/logprobs_semantics.py.
"""

from enum import StrEnum

from rlaudit.rules.audit.audit import Side
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import LOGPROBS_MODE
from rlaudit.vllm.resolution.engine import has_v0


class Returned(StrEnum):
    """The distribution of a returned logprob; LOGITS if logits are returned instead."""

    RAW = "raw"
    HALF_PROCESSED = "processed before temperature and filters"
    PROCESSED = "processed"
    LOGITS = "logits"


# The value of `logprobs_semantics` -> its meaning for rules; every other value is logits.
_RETURNED = {"raw": Returned.RAW, "before temperature": Returned.HALF_PROCESSED, "processed": Returned.PROCESSED}


def returned_logprobs(side: Side) -> Returned | Unknown:
    """Return the distribution of one side's logprobs; Unknown if its engine or mode is."""
    semantics = side.value("logprobs_semantics")
    if not isinstance(semantics, Unknown):
        return _RETURNED.get(semantics, Returned.LOGITS)
    mode = side.value("logprobs_mode")
    if isinstance(mode, Unknown) and side.is_v1 is not False and side.version >= LOGPROBS_MODE:
        return Unknown(f"The setting logprobs_mode decides: {mode.reason}", hangs_on=mode.fact)
    return Unknown(f"The engine, V0 or V1, decides: {side.resolution.why_engine}")


def engine_of(side: Side) -> str:
    """Return a side's name for messages, `vLLM 0.8.5 (V0)`; without the engine if it is unknown or only V1 is left."""
    if side.is_v1 is None or not has_v0(side.version):
        return f"vLLM {side.version}"
    return f"vLLM {side.version} ({'V1' if side.is_v1 else 'V0'})"


def in_the_loss(config: RolloutConfig) -> bool:
    """Return whether returned logprobs can be a part of the objective: as old logprobs, or in a correction."""
    facts = config.facts
    recomputed = facts.recomputes_old_logprobs is True and facts.importance_sampling_correction is False
    return not recomputed and facts.uses_rollout_logprobs is not False


def asks_for_none(config: RolloutConfig) -> bool:
    """Return whether the program makes its requests in this file, all without logprobs: these are no RL rollouts."""
    counts = [config.sampling[name].value for name in ("logprobs", "prompt_logprobs") if name in config.sampling]
    alone = config.offline and bool(config.sampling) and not config.has_trainer
    return alone and all(value is None for value in counts)
