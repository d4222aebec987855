"""Finished trainings as their files say them, without an engine: one faulty in a way, or none."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from rlaudit.engines.cells.launch import Failure
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.canary.plan import CanaryPlan, TrainingRun, plan_trainings
from rlaudit.laboratory.studies.canary.recipe import training_recipe_of
from rlaudit.laboratory.studies.canary.run import FinishedCanary, FinishedTraining, read_curves
from rlaudit.laboratory.study_run import Bookkeeping

STEPS = 30
# What two roundings leave.
NOISE = 1e-12
# k3 at the first step and afterwards, and what else is off.
FAULTS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "none": ({"k3": NOISE}, {"k3": NOISE}),
    "raw": ({"k3": 6e-3}, {"k3": 9e-3}),
    "after the first update": ({"k3": NOISE}, {"k3": 2e-4}),
    "rounds differently": ({"k3": NOISE}, {"k3": 1e-10}),
    "ahead": ({"k3": NOISE}, {"k3": 2e-4, "stats/lag": 1.5, "rlaudit/in_flight": 64.0}),
}


@dataclass
class Canaries:
    """Makes finished canaries in a folder."""

    folder: Path
    failed: dict[str, str] = field(default_factory=dict)

    def recipe(self, arms: list[dict[str, Any]], **more: Any) -> CanaryPlan:
        """The plan of a recipe with these arms."""
        document = {
            "schema": "rlaudit-recipe/1",
            "training": {"seeds": 3, "steps": STEPS, **more.pop("training", {})},
            "arms": [{"version": "0.18.1", **arm} for arm in arms],
            **more,
        }
        prompts = PromptSet("sums", ({"prompt_token_ids": [1]},), ([2],))
        return plan_trainings(
            training_recipe_of(document, Path("x.yaml")),
            SimpleNamespace(kind="cpu"),
            prompts,  # type: ignore[arg-type]
        )

    def finished(
        self, plan: CanaryPlan, faults: dict[str, str], reward: dict[str, float] | None = None
    ) -> FinishedCanary:
        """Every training of the plan, each arm with its fault and its final reward above the usual."""
        trainings = tuple(
            self._training(run, faults.get(run.arm.name, "none"), (reward or {}).get(run.arm.name, 0.0))
            for run in plan.runs
        )
        setup = SimpleNamespace(accelerator=SimpleNamespace(kind="cpu"), provenance=dict)
        books = Bookkeeping(60.0, 50.0, len(trainings), 0, 0, 0, 4096.0, 0.0)
        return FinishedCanary(plan, trainings, setup, books)  # type: ignore[arg-type]

    def _training(self, run: TrainingRun, fault: str, reward: float) -> FinishedTraining:
        if run.arm.name in self.failed:
            return FinishedTraining(run, "failed", Failure("load", self.failed[run.arm.name]))
        path = self.folder / f"{run.name}.jsonl"
        generator = np.random.default_rng([*run.arm.name.encode(), run.seed])
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(fault, reward, generator)))
        told = {"trainer": {"seconds": {"generate": 5.0, "train": 4.0, "update": 0.5}, "loop_seconds": 10.0}}
        return FinishedTraining(run, "ok", None, told, read_curves(path), path)


def rows(fault: str, reward: float, generator: np.random.Generator) -> list[dict[str, float]]:
    """metrics.jsonl of one training."""
    found = []
    for step in range(1, STEPS + 1):
        said = dict(FAULTS[fault][step > 1])
        k3 = said.pop("k3") * generator.uniform(0.8, 1.2)
        found.append(
            {
                "step": step,
                "rl/reward": 0.8 + reward * step / STEPS + generator.normal(0, 0.01),
                "rl/entropy": 0.15 + generator.normal(0, 0.01),
                "rl/new_logprobs": -0.15 + generator.normal(0, 0.01),
                "rl/kl_new_old": k3,
                "rl/clamp_log_ratio_new_old_indicator": 0.0 if k3 < 1e-9 else 0.9 + generator.normal(0, 0.01),
                "rl/ratio_new_old": 1.0 + generator.normal(0, k3**0.5 / 30),
                "stats/lag": 0.0,
                "rlaudit/in_flight": 0.0,
                **said,
            }
        )
    return found
