"""The dtype in which engine and trainer compute their output head (`lm_head`).

vLLM takes a separate dtype for the head from `hf_overrides={"head_dtype": ...}`. For text generation it has no effect
in 0.10.2 (which documents it) and before, is refused with a warning from 0.11.0 to 0.25.1, and is honoured from 0.26.0
on. Before that only plug-ins do it. Source: ModelConfig.head_dtype, vllm/config/model.py (0.11.0:1462);
LogitsProcessor, vllm/model_executor/layers/logits_processor.py (0.26.0:105); vLLM pull request 48390.
"""

from typing import Any

from rlaudit.files.parse_json import parse_json
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import HEAD_DTYPE

HALF = "the model's dtype"


def requested_head_dtype(side: Side) -> str | None:
    """Return the head dtype of hf_overrides; None if it names none or cannot be read."""
    overrides: Any = side.value("hf_overrides")
    if isinstance(overrides, str):
        try:
            overrides = parse_json(overrides)
        except ValueError:
            return None
    requested = overrides.get("head_dtype") if isinstance(overrides, dict) else None
    return _name(requested) if isinstance(requested, str) and requested != "model" else None


def rollout_head_dtype(side: Side) -> str | Unknown:
    """Return `float32`, another dtype's name, or HALF if the head follows a model in half precision."""
    by_plug_in = side.config.facts.rollout_head_dtype
    if by_plug_in is not None:
        return by_plug_in
    requested = requested_head_dtype(side)
    if requested is not None and side.version >= HEAD_DTYPE:
        return requested
    given = side.resolution.given("dtype")
    if given is None or given == "auto":  # never float32 on a GPU: a float32 checkpoint is cast to half precision
        return HALF
    return given if isinstance(given, Unknown) else _name(given)


def trainer_head_dtype(audit: Audit) -> Dtype | None:
    """Return the dtype of the trainer's head, else of its whole forward pass; None if neither is known."""
    facts = audit.config.facts
    return next((dtype for dtype in (facts.head_dtype, facts.dtype) if isinstance(dtype, Dtype)), None)


def _name(dtype: Any) -> str:
    return Dtype.named(dtype) or str(dtype).lower().removeprefix("torch.")
