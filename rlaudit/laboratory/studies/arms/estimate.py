"""What a plan of arms will cost, before anything is started.

Start-up and decode rates were measured with a 135 M model on 2 cores; those of a GPU are guesses.
"""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.emulated_dtypes import emulated
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan
from rlaudit.laboratory.studies.arms.rollout import engine_of
from rlaudit.laboratory.study import Cost

START_SECONDS = {"cpu": 32.0, "cuda": 60.0}
TOKENS_PER_SECOND = {"cpu": 120.0, "cuda": 3000.0}
SCORED_TOKENS_PER_SECOND = {"cpu": 60.0, "cuda": 5000.0}
# How much longer a dtype takes that the processor emulates: bfloat16 against float32 with AVX2 only, prompts included.
EMULATED_TIMES = 20.0


def cost_of_arms(plan: Plan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return what the plan starts: every arm with the engine that it is about."""
    machine = machine_of(accelerator)
    starts = {_rollout_identity(arm) for block in plan.blocks for arm in block.engines}
    seconds, passes = 0.0, 0
    lines = []
    for block in plan.blocks:
        tokens = _tokens(block, prompts)
        own = {_rollout_identity(arm) for arm in block.engines}
        slower = EMULATED_TIMES if emulated(_dtype(block), accelerator) else 1.0
        seconds += len(own) * (START_SECONDS[machine.platform] + tokens / TOKENS_PER_SECOND[machine.platform] * slower)
        seconds += tokens / SCORED_TOKENS_PER_SECOND[machine.platform] * 2 * slower
        passes += tokens * (len(own) + 2)
        lines.append(
            f"block {block.name}: {len(block.engines)} arms, {len(own)} engine starts, at most {tokens} tokens an arm"
        )
        for arm in block.engines:
            engine = engine_of(arm.treatment, machine, arm.model or plan.recipe.model)
            lines.append(f"  vLLM {arm.treatment.version:<8} {engine!s:<14} {arm.name}")
    lines += [f"block {name} is left out: {reason}" for name, reason in plan.left_out.items()]
    return Cost(lines, len(starts), seconds, passes)


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
