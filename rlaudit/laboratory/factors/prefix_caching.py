"""Reuse of the KV cache between prompts that begin alike. Off by default in V0, on in V1.

`on` took effect only if prompt tokens were served from the cache. Prompts shorter than a block never hit it, and the
CPU's default block of 128 tokens is longer than most test prompts. Source: vllm/engine/arg_utils.py (0.8.5:1572,
0.18.1:2062).
"""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, switched
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` or `off`, by vLLM's engine argument."""
    return treatment.with_engine_args("prefix-caching", enable_prefix_caching=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the number of tokens that the engine took from the cache."""
    enabled = bool(trace.resolved.get("enable_prefix_caching"))
    if trace.cached_tokens > 0:
        return Observation("on", f"{trace.cached_tokens} prompt tokens came from the cache")
    if enabled:
        return Observation(None, "prefix caching is enabled, but no prompt token came from the cache")
    return Observation("off", "prefix caching is disabled in the loaded configuration, with 0 cached tokens")


FACTOR = Factor(
    name="prefix-caching",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="enable_prefix_caching",
    move=switched,
)
