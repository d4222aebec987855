"""What a weight-update recipe will cost, before anything is started.

Rates were measured with the default model in float32 on 2 quiet cores; a GPU starts slower and samples faster.
"""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.updates.cases import UpdateCase
from rlaudit.laboratory.studies.updates.plan import EngineStart, UpdatePlan
from rlaudit.laboratory.study import Cost

START_SECONDS = {"cpu": 20.0, "cuda": 60.0}
LOAD_SECONDS = {"cpu": 1.5, "cuda": 1.0}
READ_BACK_SECONDS = 4.0
TOKENS_PER_SECOND = {"cpu": 150.0, "cuda": 3000.0}
SCORED_SEQUENCES_PER_SECOND = {"cpu": 8.0, "cuda": 200.0}
CHECKPOINT_SECONDS = 4.0
SCORING_START_SECONDS = 3.0


def cost_of_updates(plan: UpdatePlan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return what the plan starts: every engine start with its engine and its cases."""
    machine = machine_of(accelerator)
    starts, device = plan.starts, machine.platform
    seconds = sum(start_seconds(start, device) for start in starts) + scoring_seconds(starts, device)
    lines = []
    for start in starts:
        engine = start.expected(machine, plan.recipe.model)
        brought = "" if start.transport == "disk" else f", brought by {start.transport}"
        lines.append(f"{start.name}: {engine}, {len(start.cases)} cases, loading by {start.path}{brought}")
        lines += [f"  {case.name}" for case in start.cases]
    passes = sum(_tokens(step) for start in starts for case in start.cases for step in case.steps)
    return Cost(lines, len(starts), seconds, passes)


def start_seconds(start: EngineStart, device: str) -> float:
    """Return the seconds of one engine process."""
    return START_SECONDS[device] + sum(_case_seconds(case, device) for case in start.cases)


def _case_seconds(case: UpdateCase, device: str) -> float:
    kinds = [step["do"] for step in case.steps]
    loads = kinds.count("update") + kinds.count("restore")
    tokens = sum(_tokens(step) for step in case.steps)
    return (
        loads * LOAD_SECONDS[device] + kinds.count("read_back") * READ_BACK_SECONDS + tokens / TOKENS_PER_SECOND[device]
    )


def _tokens(step: dict[str, object]) -> int:
    below = step.get("while_paused") or []
    assert isinstance(below, list)
    own = step.get("requests") or []
    assert isinstance(own, list)
    return len(own) * int(str(step.get("max_tokens") or 0)) + sum(_tokens(paused) for paused in below)


def scoring_seconds(starts: tuple[EngineStart, ...], device: str) -> float:
    """Return the seconds of writing checkpoints and scoring. Cases mostly differ in their flights alone."""
    flights = sum(
        len(step["requests"])
        for start in starts
        for case in start.cases
        for step in case.steps
        if step["do"] == "submit" and step["run"] == "flight"
    )
    # Each flight is scored with the weights before and after it; versions and mixtures are checkpoints.
    checkpoints = 2 + len(starts) // 2
    scored = 2 * flights / SCORED_SEQUENCES_PER_SECOND[device]
    return checkpoints * (CHECKPOINT_SECONDS + SCORING_START_SECONDS) + scored
