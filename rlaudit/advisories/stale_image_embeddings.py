"""Image embeddings of old weights serve new requests: the encoder cache outlives weight updates.

From 0.10.2 on the output of the vision encoder is kept under the image's hash, across requests, and no way of loading
weights clears it. Where the encoder is trained, an image that comes again is seen through old weights. A pause that
clears caches clears this one too from 0.16.0 on, and `reset_encoder_cache` does.
"""

from packaging.version import Version

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import IMAGES, IN_PROMPTS, UPDATED, patched_by
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

_PAUSE_CLEARS, _SLEEP_CLEARS = Version("0.16.0"), Version("0.17.0")


def _cleared(side: Side) -> bool:
    paused = side.config.says("pause_clears_cache") is True and side.version >= _PAUSE_CLEARS
    return paused or (side.value("enable_sleep_mode") is True and side.version >= _SLEEP_CLEARS)


ADVISORY = Advisory(
    name="stale-image-embeddings",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.10.1.1", "vllm/v1/core/encoder_cache_manager.py:34", "no caching is shared between requests"),
        first=Seen(
            "0.10.2",
            "vllm/v1/core/encoder_cache_manager.py:71",
            "what no request holds any more stays until it is evicted, under its hash",
        ),
        last=Seen(
            "0.33.0",
            "vllm/v1/core/encoder_cache_manager.py:94",
            "what no request holds any more stays until it is evicted, under its hash",
        ),
    ),
    conditions=(UPDATED, IMAGES, IN_PROMPTS),
    setting="weight_updates",
    way_out="Call reset_encoder_cache (0.16.0 on) with every update, or freeze the vision encoder.",
    confirm="Send one image before and after an update of the encoder, with and without reset_encoder_cache.",
    threads=("vllm#44910", "vllm#46125", "trl#7198", "verl#6523"),
    workarounds=(
        Condition("a pause or a sleep clears the caches", _cleared),
        patched_by("verl", "0.18.0", "verl 1dda039 resets every cache"),
    ),
)
