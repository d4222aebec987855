"""What a plan will cost, before anything is started.

Minutes are an order of magnitude: start-up and decode rates were measured with a 135 M model on 2 cores, and on a GPU
the start-up of the engine dominates whatever the rate.
"""

from pathlib import Path

from rlaudit.engines.accelerator import Accelerator
from rlaudit.engines.environment import locate
from rlaudit.engines.environment_spec import Build, EnvironmentSpec, trainer_spec
from rlaudit.experiment.plan import Arm, BlockPlan, Plan
from rlaudit.experiment.prompts import PromptSet

START_SECONDS = {"cpu": 32.0, "cuda": 60.0}
TOKENS_PER_SECOND = {"cpu": 120.0, "cuda": 3000.0}
SCORED_TOKENS_PER_SECOND = {"cpu": 60.0, "cuda": 5000.0}
ENVIRONMENT_GIB = {"cpu": 7.0, "cuda": 9.0}
BUILD_MINUTES = 1.5


def estimate(plan: Plan, accelerator: Accelerator, prompts: PromptSet, folder: Path) -> str:
    """Arms, engine starts, minutes, disk, and which cells are already there, as text."""
    build: Build = accelerator.kind
    specs = [EnvironmentSpec("vllm", version, build) for version in plan.versions] + [trainer_spec(build)]
    missing = [spec.name for spec in specs if locate(spec) is None]
    done = len(list((folder / "cells").glob("*/result.json")))
    starts = {_rollout_identity(arm) for block in plan.blocks for arm in block.arms}
    seconds = 0.0
    lines = []
    for block in plan.blocks:
        tokens = _tokens(block, prompts)
        own = {_rollout_identity(arm) for arm in block.arms}
        seconds += len(own) * (START_SECONDS[build] + tokens / TOKENS_PER_SECOND[build])
        seconds += tokens / SCORED_TOKENS_PER_SECOND[build] * 2
        lines.append(
            f"block {block.name}: {len(block.arms)} arms, {len(own)} engine starts, at most {tokens} tokens an arm"
        )
        lines += [f"  vLLM {arm.treatment.version:<8} {arm.name}" for arm in block.arms]
    minutes = seconds / 60 + BUILD_MINUTES * len(missing)
    lines.append(f"engine starts: {len(starts)}")
    lines.append(f"minutes: about {minutes:.0f} on this {build} ({accelerator.name})")
    gib = ENVIRONMENT_GIB[build] * len(missing)
    lines.append(
        f"environments to build: {', '.join(missing) or 'none'}" + (f" (about {gib:.0f} GiB)" if missing else "")
    )
    lines.append(f"cells already in {folder}: {done}")
    return "\n".join(lines)


def _tokens(block: BlockPlan, prompts: PromptSet) -> int:
    used = block.settings.prompts_used or len(prompts.prompts)
    return used * block.settings.samples * block.settings.max_tokens


def _rollout_identity(arm: Arm) -> str:
    """Arms that differ only in their trainer share an engine start."""
    treatment = arm.treatment
    return repr(
        (
            arm.block,
            treatment.version,
            sorted(treatment.engine_args.items(), key=str),
            sorted(treatment.variables.items()),
            sorted(treatment.sampling.items()),
            treatment.fp32_head,
            treatment.concurrency,
            arm.replicate,
            arm.model,
        )
    )
