"""After a deep sleep, an 8-bit key-value cache is scaled by zero.

Sleep of level 2 gives the memory of weights back. The scales of the cache lie in it and are not buffers, so they are
not saved: on waking they are zero, keys and values become zero, and the answers gibberish. 0.12.0 sets them again.
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import EIGHT_BIT_CACHE, SLEEPS
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer


def _deeply(side: Side) -> bool | Unknown:
    """TRL sleeps at level 2 (trl/generation/vllm_generation.py:702 of f2cd577)."""
    return side.config.framework == "trl" or Unknown("at which level the engine sleeps is not told by this file")


ADVISORY = Advisory(
    name="sleep-zeroes-cache-scales",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        first=Seen("0.8.5", "vllm/v1/worker/gpu_worker.py:107", "on waking, buffers are restored and nothing else"),
        last=Seen("0.11.2", "vllm/v1/worker/gpu_worker.py:157", "on waking, buffers are restored and nothing else"),
        fixed=Seen("0.12.0", "vllm/v1/worker/gpu_worker.py:152", "on waking, the scales are set again"),
    ),
    conditions=(SLEEPS, EIGHT_BIT_CACHE, Condition("it sleeps at level 2", _deeply)),
    setting="kv_cache_dtype",
    way_out="Sleep at level 1, keep the cache in 16 bits, or move to 0.12.0.",
    confirm="Answer a prompt greedily before and after a sleep.",
    threads=("vllm#28783", "vllm#29341"),
    escape={"kv_cache_dtype": "auto"},
)
