"""The output head (`lm_head`) in float32, on the rollout side, on the trainer side, or on both.

With float32 on one side only, the two sides can be farther apart than with float32 on none, so each level sets both
sides. vLLM 0.26.0 and later have an argument for the rollout side; before, a worker extension sets it. rlaudit reads
the precision of a side from its top logprobs: those of bfloat16 logits differ by multiples of one step. Source:
research on PipelineRL's fp32 head, vLLM pull request 48390, NeMo-RL pull request 3936.
"""

from dataclasses import replace

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, always
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer
from rlaudit.settings.trainer_facts import Dtype

# (rollout head is float32, trainer head is float32)
LEVELS = {"neither": (False, False), "rollout": (True, False), "trainer": (False, True), "both": (True, True)}


def set_level(treatment: Treatment, level: str) -> Treatment:
    """Set which sides compute their head in float32; the others keep the dtype of the model."""
    rollout, trainer = LEVELS[level]
    head_dtype = Dtype.FLOAT32.value if trainer else "same"
    return replace(treatment, fp32_head=rollout, trainer=replace(treatment.trainer, head_dtype=head_dtype))


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the lattice of each side's top logprobs."""
    if trace.rollout_head is None or trace.trainer_head is None:
        return Observation(None, trace.head_because)
    observed = (trace.rollout_head == Dtype.FLOAT32, trace.trainer_head == Dtype.FLOAT32)
    level = next(name for name, sides in LEVELS.items() if sides == observed)
    return Observation(level, trace.head_because)


FACTOR = Factor(
    name="fp32-head",
    layer=Layer.INFERENCE_PATH,
    levels=tuple(LEVELS),
    set_level=set_level,
    observe=observe,
    setting='hf_overrides={"head_dtype": "float32"} (0.26.0 and later)',
    move=always("both"),
)
