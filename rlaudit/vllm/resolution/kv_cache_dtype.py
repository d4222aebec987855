"""kv_cache_dtype=auto: the model's dtype, and from 0.14.0 possibly fp8 because the checkpoint says so."""

from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import CACHE_DTYPE_FROM_CHECKPOINT
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved

_KEYS = ("kv_cache_scheme", "kv_cache_quant_algo")


def apply(view: Resolution) -> Resolved | None:
    """Return auto, unless the checkpoint is quantized together with its cache."""
    if view.given("kv_cache_dtype") not in (None, "auto") or not view.since(CACHE_DTYPE_FROM_CHECKPOINT):
        return None
    if view.checkpoint is None:
        return Resolved("auto", "the model's dtype, unless config.json quantizes the cache")
    quantized = view.checkpoint.get("quantization_config")
    inner = quantized.get("quantization") if isinstance(quantized, dict) else None
    places = [place for place in (quantized, inner) if isinstance(place, dict)]
    if any(place.get(key) for place in places for key in _KEYS):
        reason = "config.json quantizes the key-value cache: its dtype follows the checkpoint"
        return Resolved(Unknown(reason), "taken from the checkpoint", overrules=True)
    return Resolved("auto", "the model's dtype: the checkpoint does not quantize the cache")


RESOLUTION = ResolutionRule(
    "kv_cache_dtype",
    (
        Function("vllm/utils/torch_utils.py", "resolve_kv_cache_dtype_string"),
        Function("vllm/engine/arg_utils.py", "EngineArgs.create_engine_config", ("resolved_cache_dtype",)),
    ),
    apply,
)
