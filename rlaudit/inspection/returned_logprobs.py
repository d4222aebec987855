"""Which distribution the logprobs of a vLLM version are of: the fact that most semantic rules start from.

V0 takes them after penalties, temperature and filters. V1 takes them before everything (`raw_logprobs`, the only mode
before 0.10.0 and the default since); `processed_logprobs` is before temperature and filters in 0.10.0 and 0.10.1, and
after them from 0.10.2 on. Source: vllm/model_executor/layers/sampler.py (0.8.5), vllm/v1/sample/sampler.py (0.8.5,
0.10.0, 0.10.2), vLLM pull requests 21398 and 22387.
"""

from enum import StrEnum

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import Side
from rlaudit.vllm.milestones import LOGPROBS_MODE, PROCESSED_IS_FINAL
from rlaudit.vllm.resolution.engine import has_v0


class Returned(StrEnum):
    """What a returned logprob is the logarithm of. LOGITS: of nothing, the logits themselves are returned."""

    RAW = "raw"
    HALF_PROCESSED = "processed before temperature and filters"
    PROCESSED = "processed"
    LOGITS = "logits"


def returned_logprobs(side: Side) -> Returned | Unknown:
    """What one side returns; Unknown where engine or mode cannot be told."""
    if side.is_v1 is False:  # V0 does not read logprobs_mode, not even in 0.10, which has the argument
        return Returned.PROCESSED
    if side.version < LOGPROBS_MODE:
        return Returned.RAW if side.is_v1 else Unknown(_why_engine(side))
    mode = side.value("logprobs_mode")
    if isinstance(mode, Unknown):
        return Unknown(f"logprobs_mode cannot be told: {mode.reason}")
    if mode == "processed_logprobs" and side.version >= PROCESSED_IS_FINAL:
        return Returned.PROCESSED
    if side.is_v1 is None:
        return Unknown(_why_engine(side))
    modes = {"raw_logprobs": Returned.RAW, "processed_logprobs": Returned.HALF_PROCESSED}
    return modes.get(str(mode), Returned.LOGITS)


def engine_of(side: Side) -> str:
    """`vLLM 0.8.5 (V0)`, as messages name a side; without the engine where it is unknown or only V1 is left."""
    if side.is_v1 is None or not has_v0(side.version):
        return f"vLLM {side.version}"
    return f"vLLM {side.version} ({'V1' if side.is_v1 else 'V0'})"


def _why_engine(side: Side) -> str:
    return f"whether V0 or V1 runs cannot be told: {side.resolution.why_engine}"
