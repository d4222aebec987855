"""Weight updates: does an engine serve the weights that the trainer thinks it serves?"""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.updates.cases import FLIGHT
from rlaudit.laboratory.studies.updates.plan import UpdatePlan, plan_updates
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.studies.updates.run import execute
from rlaudit.laboratory.study import Cost, Study


def cost_of_updates(plan: UpdatePlan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return the cost of every engine start with its engine and its cases."""
    machine, lines = machine_of(accelerator), []
    for start in plan.starts:
        engine = start.wanted.expected(machine, plan.recipe.model)
        brought = "" if start.transport == "disk" else f", brought by {start.transport}"
        lines.append(f"{start.name}: {engine}, {len(start.cases)} cases, loading by {start.path}{brought}")
        lines += [f"  {case.name}" for case in start.cases]
    tokens = {run: len(sampled["requests"]) * sampled["max_tokens"] for run, sampled in plan.runs.items()}
    runs = [run for start in plan.starts for case in start.cases for run in case.runs]
    sampled = sum(tokens[run] for run in runs)
    # Most cases differ only in their flights, each of which is scored with the weights before and after the update.
    scored = 2 * tokens[FLIGHT] * runs.count(FLIGHT)
    moves = sum(start.moves for start in plan.starts) + 2
    return Cost(lines, len(plan.starts), sampled, sampled + scored, moves)


STUDY = Study("updates", "weight_updates", update_recipe_of, plan_updates, cost_of_updates, execute)
