"""After any sleep, the calibrated scales of an 8-bit key-value cache are one.

On waking all scales are set to 1.0, also those that the checkpoint brings. Nothing fails, and the cache is read in
another precision than before the sleep. From 0.29.0 on scales are saved and restored like every other buffer.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import EIGHT_BIT_CACHE, SLEEPS, model
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="wake-up-forgets-cache-scales",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.11.2", "vllm/v1/worker/gpu_worker.py:157", "on waking, scales are not touched"),
        first=Seen("0.12.0", "vllm/v1/worker/gpu_model_runner.py:633", "every scale is set to 1.0"),
        last=Seen("0.28.0", "vllm/v1/worker/gpu_model_runner.py:1065", "every scale is set to 1.0"),
        fixed=Seen("0.29.0", "vllm/v1/worker/gpu_worker.py:281", "scales are restored with all other buffers"),
    ),
    conditions=(
        SLEEPS,
        EIGHT_BIT_CACHE,
        model("the checkpoint has calibrated cache scales", lambda kind: kind.calibrated_cache),
    ),
    setting="kv_cache_dtype",
    way_out="Keep the cache in 16 bits, or move to 0.29.0.",
    confirm="Answer a prompt greedily before and after a sleep.",
    threads=("vllm#45617", "vllm#48310"),
    escape={"kv_cache_dtype": "auto"},
)
