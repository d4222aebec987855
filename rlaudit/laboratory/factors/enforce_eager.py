"""Execution without torch.compile and without CUDA graphs: two things at once. V0 on CPU is always eager.

If `compile` alone or `cudagraphs` alone has the same effect, that one is the cause. If neither alone has it, only the
two together do. In V0, which compiles nothing, it moves the graphs alone; on a CPU, which has no
graphs, compiling alone.
Source: vllm/config (ModelConfig.enforce_eager); NeMo-RL's diagnostics found compiled and eager decode to differ.
"""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, resolved_switch, switched
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` runs eagerly, `off` compiles as the release does by default."""
    return treatment.with_engine_args("enforce-eager", enforce_eager=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the loaded model configuration."""
    return resolved_switch("enforce_eager", trace)


FACTOR = Factor(
    name="enforce-eager",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="enforce_eager",
    move=switched,
)
