"""The vLLM release itself; any version from 0.8.5 on."""

from dataclasses import replace

from rlaudit.experiment.factor import ArmTrace, Factor, Observation
from rlaudit.experiment.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """The same settings under another release."""
    return replace(treatment, version=level)


def observe(trace: ArmTrace) -> Observation:
    """The release whose environment ran, and its engine generation."""
    return Observation(
        trace.treatment.version, f"vLLM {trace.treatment.version}, engine {trace.resolved.get('engine')}"
    )


FACTOR = Factor(
    name="engine-version",
    layer=Layer.INFERENCE_PATH,
    levels=(),
    set_level=set_level,
    observe=observe,
    setting="vllm",
)
