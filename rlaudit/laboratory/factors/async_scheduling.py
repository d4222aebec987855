"""Scheduling of the next step before the tokens of the last one are known. Default since 0.14.0; CPUs turn it off.

Source: vllm/config/vllm.py (0.18.1:713-773), vllm/platforms/cpu.py (0.18.1:176).
"""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, resolved_switch, switched
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` or `off`, by vLLM's engine argument."""
    return treatment.with_engine_args("async-scheduling", async_scheduling=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the loaded scheduler configuration: the log line of 0.18.1 comes before the platform turns it off."""
    return resolved_switch("async_scheduling", trace)


FACTOR = Factor(
    name="async-scheduling",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="async_scheduling",
    move=switched,
    timed=True,
)
