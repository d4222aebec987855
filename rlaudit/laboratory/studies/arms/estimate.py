"""What a plan will cost, before anything is started.

Minutes are an order of magnitude: start-up and decode rates were measured with a 135 M model on 2 cores, and on a GPU
the start-up of the engine dominates whatever the rate.
"""

from pathlib import Path

from packaging.version import Version

from rlaudit.engines.environments.disk import gigabytes
from rlaudit.engines.environments.environment import locate
from rlaudit.engines.environments.environment_spec import Build, EnvironmentSpec
from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.environments.refusals import needs, refusals
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.emulated_dtypes import emulated
from rlaudit.engines.hardware.machine import machine_of
from rlaudit.engines.models.model_files import ModelFiles, read_model_files
from rlaudit.laboratory.fit import misfit, plan_needs
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan
from rlaudit.laboratory.studies.arms.rollout import engine_of
from rlaudit.laboratory.surroundings import environments_wanted
from rlaudit.vllm.catalogue import known_versions

START_SECONDS = {"cpu": 32.0, "cuda": 60.0}
TOKENS_PER_SECOND = {"cpu": 120.0, "cuda": 3000.0}
SCORED_TOKENS_PER_SECOND = {"cpu": 60.0, "cuda": 5000.0}
# How much longer a dtype takes that the processor emulates: bfloat16 against float32 with AVX2 only, prompts included.
EMULATED_TIMES = 20.0
# Of vLLM 0.18.1 where PyTorch's CPU index was not reachable and a torch with CUDA came instead; 3.5 where it is.
GIGABYTES_FOR_CPU = 8.4
BUILD_MINUTES = 1.5


def estimate(
    plan: Plan, accelerator: Accelerator, prompts: PromptSet, folder: Path, given: GivenInterpreters = NONE_GIVEN
) -> str:
    """Arms, engine starts, minutes, disk, which cells are already there, and what the driver refuses, as text."""
    build: Build = accelerator.kind
    machine = machine_of(accelerator)
    files = read_model_files(plan.recipe.model, plan.recipe.revision)
    specs = environments_wanted(plan, accelerator, files, given)
    missing = [spec for spec in specs if not spec.command and locate(spec) is None]
    done = len(list((folder / "cells").glob("*/result.json")))
    starts = {_rollout_identity(arm) for block in plan.blocks for arm in block.arms}
    seconds = 0.0
    lines = []
    for block in plan.blocks:
        tokens = _tokens(block, prompts)
        own = {_rollout_identity(arm) for arm in block.arms}
        slower = EMULATED_TIMES if emulated(_dtype(block), accelerator) else 1.0
        seconds += len(own) * (START_SECONDS[build] + tokens / TOKENS_PER_SECOND[build] * slower)
        seconds += tokens / SCORED_TOKENS_PER_SECOND[build] * 2 * slower
        lines.append(
            f"block {block.name}: {len(block.arms)} arms, {len(own)} engine starts, at most {tokens} tokens an arm"
        )
        for arm in block.arms:
            engine = engine_of(arm.treatment, machine, arm.model or plan.recipe.model)
            lines.append(f"  vLLM {arm.treatment.version:<8} {engine!s:<14} {arm.name}")
    lines += [f"block {name} is left out: {reason}" for name, reason in plan.left_out.items()]
    minutes = seconds / 60 + BUILD_MINUTES * len(missing)
    lines.append(f"engine starts: {len(starts)}")
    lines.append(f"minutes: about {minutes:.0f} on this {build} ({accelerator.name})")
    disk = f" (up to {sum(map(_gigabytes, missing)):.0f} GB)" if missing else ""
    lines.append(f"environments to build: {', '.join(spec.name for spec in missing) or 'none'}{disk}")
    lines.append(f"cells already in {folder}: {done}")
    known = known_versions()
    lines += [
        f"vLLM {version} is not among the releases that rlaudit knows, {known[0]} to {known[-1]}: whether there is one "
        "is asked of the index when it is built"
        for version in plan.versions
        if Version(version) not in known
    ]
    lines += refused(plan, accelerator, files, given)
    return "\n".join(lines)


def refused(
    plan: Plan, accelerator: Accelerator, files: ModelFiles, given: GivenInterpreters = NONE_GIVEN
) -> list[str]:
    """What a run of the plan will be refused for before it starts, as lines of text."""
    found = [*refusals(environments_wanted(plan, accelerator, files, given), accelerator)]
    too_large = misfit(files, plan_needs(plan, accelerator, files))
    return [f"refused: {one.message}\n  {one.hint}" for one in (*found, too_large) if one is not None]


def _gigabytes(spec: EnvironmentSpec) -> float:
    needed = needs(spec)
    return GIGABYTES_FOR_CPU if spec.build == "cpu" else gigabytes(spec.package, needed.cuda if needed else None)


def _dtype(block: BlockPlan) -> str:
    return str(block.settings.engine_args.get("dtype", block.settings.trainer.dtype))


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
            treatment.engine,
            sorted(treatment.engine_args.items(), key=str),
            sorted(treatment.variables.items()),
            sorted(treatment.sampling.items()),
            treatment.fp32_head,
            treatment.compiles,
            treatment.captures_graphs,
            treatment.concurrency,
            arm.replicate,
            arm.model,
        )
    )
