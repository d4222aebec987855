"""The settings of the parity arm, ready to paste: vLLM's own names, and what this run saw each of them do."""

from collections.abc import Sequence
from typing import Any

import yaml

from rlaudit.diagnosis.effects import FactorEffect
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role, known_factors
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.treatment import Treatment


def parity_yaml(block: BlockPlan, effects: Sequence[FactorEffect]) -> str | None:
    """A YAML snippet of the engine settings that differ between candidate and parity arm; None without a parity arm."""
    if block.parity_name is None:
        return None
    candidate = next(iter(block.with_role(Role.CANDIDATE)))
    version = candidate.treatment.version
    lines = [f"# vLLM {version}: parity settings of block {block.name}"]
    for factor in block.settings.parity:
        level = block.settings.factors[factor][0]
        alone = known_factors()[factor].apply(Treatment(version=version), level)
        for name, value in settings_of(alone).items():
            lines.append(f"{_yaml_line(name, value)}  # {_comment(factor, level, effects)}")
    return "\n".join(lines) + "\n"


def settings_of(treatment: Treatment) -> dict[str, Any]:
    """Engine arguments and variables of a treatment in vLLM's names; for the head, what each side has to do."""
    # For the run on GPUs that a parity arm is made for, also where it was tried on a CPU.
    settings = {**engine_settings(treatment, "cuda").engine_args, **treatment.declared}
    if treatment.fp32_head:
        settings["hf_overrides"] = {"head_dtype": "float32"}
    return settings


def _comment(factor: str, level: str, effects: Sequence[FactorEffect]) -> str:
    own = [effect for effect in effects if (effect.factor, effect.level) == (factor, level)]
    seen = own[-1].verdict.value if own else "not measured"
    if factor == "fp32-head":
        return f"{seen}; from 0.26.0 on, and the trainer's head in float32 as well"
    return seen


def _yaml_line(name: str, value: Any) -> str:
    # A bare scalar is a document of its own to YAML, which ends it with a line of dots.
    text = yaml.safe_dump(value, default_flow_style=True, width=200).removesuffix("...\n")
    return f"{name}: {text.strip()}"
