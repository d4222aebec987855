"""The dtype of weights and activations in the rollout engine."""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, always
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """One of vLLM's own dtype names."""
    return treatment.with_engine_args("dtype", dtype=level)


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the loaded model configuration, in which `auto` is resolved."""
    return Observation(trace.resolved.get("dtype"), f"loaded configuration: dtype={trace.resolved.get('dtype')}")


FACTOR = Factor(
    name="dtype",
    layer=Layer.INFERENCE_PATH,
    levels=("float32", "bfloat16", "float16"),
    set_level=set_level,
    observe=observe,
    setting="dtype",
    move=always("float32"),
)
