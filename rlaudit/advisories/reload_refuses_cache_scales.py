"""vLLM's layerwise reload raises NotImplementedError where the new weights carry scales of the key-value cache.

A checkpoint with `q_scale`, `k_scale` or `v_scale`, as for an 8-bit cache, cannot be reloaded. 0.20.0 can.
"""

from rlaudit.advisories import BEFORE_LAYERWISE_RELOAD
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import EIGHT_BIT_CACHE, RELOADED
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="reload-refuses-cache-scales",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=BEFORE_LAYERWISE_RELOAD,
        first=Seen(
            "0.16.0",
            "vllm/model_executor/model_loader/reload/layerwise.py:184",
            "scales of attention layers raise NotImplementedError",
        ),
        last=Seen(
            "0.19.1",
            "vllm/model_executor/model_loader/reload/layerwise.py:210",
            "scales of attention layers raise NotImplementedError",
        ),
        fixed=Seen(
            "0.20.0",
            "vllm/model_executor/model_loader/reload/layerwise.py:258",
            "attention is processed after the linear layers, its scales included",
        ),
    ),
    conditions=(RELOADED, EIGHT_BIT_CACHE),
    setting="kv_cache_dtype",
    way_out="Move to 0.20.0, or send weights without cache scales.",
    confirm="Send one update: it raises where it is affected.",
)
