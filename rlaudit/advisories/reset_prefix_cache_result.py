"""`POST /reset_prefix_cache` answers 200 where the reset failed, as it does while requests run.

V1 refuses to reset a cache in use. Over HTTP that looks like success until 0.26.0, which returns `{"success": ...}`.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import PREFIX_CACHING
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer


def _reset_in_flight(side: Side) -> bool:
    return side.config.says("weight_updates") == "in flight" and side.config.says("resets_prefix_cache") is True


ADVISORY = Advisory(
    name="reset-prefix-cache-result",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.NOTE,
    window=Window(
        first=Seen("0.8.5", "vllm/entrypoints/openai/api_server.py:708", "200 for any result of the engine"),
        last=Seen("0.25.1", "vllm/entrypoints/serve/dev/cache/api_router.py:43", "200 for any result of the engine"),
        fixed=Seen("0.26.0", "vllm/entrypoints/serve/dev/cache/api_router.py:44", "the answer says whether it worked"),
    ),
    conditions=(PREFIX_CACHING, Condition("the cache is reset while requests run", _reset_in_flight)),
    setting="resets_prefix_cache",
    way_out="Drain requests first, pass reset_running_requests=True (0.12.0 on), or read the answer of 0.26.0.",
    confirm="Look for the engine's warning that the reset failed.",
    threads=("vllm#46893", "SkyRL#1824"),
)
