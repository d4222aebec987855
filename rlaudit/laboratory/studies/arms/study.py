"""Arms: engines that differ in a factor at a time, each with one set of weights."""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.dtypes import emulated
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan, plan_arms
from rlaudit.laboratory.studies.arms.recipe import recipe_of
from rlaudit.laboratory.studies.arms.rollout import engine_of
from rlaudit.laboratory.studies.arms.run import execute
from rlaudit.laboratory.study import EMULATED_TIMES, Cost, Study

# The sequences of the candidate and of one other arm are scored; equal ones are not scored again. A pass of the
# trainer, one sequence after the other, takes twice as long.
SCORING_PASSES = 4


def cost_of_arms(plan: Plan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return the cost of every arm with the engine that it is expected to start."""
    machine = machine_of(accelerator)
    engine_starts, sampled, passes = 0, 0, 0.0
    lines = []
    for block in plan.blocks:
        tokens = _tokens(block, prompts)
        starts = len({_rollout_identity(arm) for arm in block.engines})
        dtype = str(block.settings.engine_args.get("dtype", block.settings.trainer.dtype))
        engine_starts += starts
        sampled += tokens * starts
        passes += tokens * (starts + SCORING_PASSES) * (EMULATED_TIMES if emulated(dtype, accelerator) else 1.0)
        lines.append(
            f"block {block.name}: {len(block.engines)} arms, {starts} engine starts, at most {tokens} tokens an arm"
        )
        for arm in block.engines:
            engine = engine_of(arm.treatment, machine, arm.model or plan.recipe.model)
            lines.append(f"  vLLM {arm.treatment.version:<8} {engine!s:<14} {arm.name}")
    lines += [f"block {name} is left out: {reason}" for name, reason in plan.left_out.items()]
    return Cost(lines, engine_starts, sampled, passes)


def _tokens(block: BlockPlan, prompts: PromptSet) -> int:
    used = block.settings.prompts_used or len(prompts.prompts)
    return used * block.settings.samples * block.settings.max_tokens


def _rollout_identity(arm: Arm) -> str:
    """Return a key that arms which differ only in their trainer share, as they share an engine start."""
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


STUDY = Study("arms", "blocks", recipe_of, plan_arms, cost_of_arms, execute, execute)
