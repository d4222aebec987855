"""Attention over a prefix that all requests of a batch share, computed once. Off by default since 0.18.0, gone in
0.32.0.

The engine decides per step whether it pays (long common prefix, many requests): the level observed is permission, which
is what a configuration can give. CPUs do not have it. Source: vllm/config/model.py (0.17.1:219, 0.18.0:220,
0.32.0:312), vllm/platforms/cpu.py.
"""

from rlaudit.experiment.factor import ArmTrace, Factor, Observation
from rlaudit.experiment.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` or `off`, by vLLM's engine argument, which says what to disable."""
    return treatment.with_engine_args("cascade-attention", disable_cascade_attn=level == "off")


def observe(trace: ArmTrace) -> Observation:
    """From the loaded model configuration."""
    disabled = trace.resolved.get("disable_cascade_attn")
    if disabled is None:
        return Observation(None, "this engine's configuration has no disable_cascade_attn")
    return Observation("off" if disabled else "on", f"loaded configuration: disable_cascade_attn={disabled}")


FACTOR = Factor(
    name="cascade-attention",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="disable_cascade_attn",
)
