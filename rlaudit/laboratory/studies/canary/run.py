"""Carries a canary out: a cell for every arm and seed, and the curves of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlaudit.curves.curve import Run, run_of, step_keys
from rlaudit.curves.open_run import open_run
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome, shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.hardware.visible_gpus import ORDER, VISIBLE
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.laboratory.engine_cell import engine_cell
from rlaudit.laboratory.moving_weights import float32_bytes, require_room, seconds_to_move
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.studies.canary.plan import CanaryPlan, TrainingRun
from rlaudit.laboratory.studies.canary.recipe import TRAINER, reward_file
from rlaudit.laboratory.study_run import Bookkeeping, StudyRun
from rlaudit.laboratory.weight_path import loading_path

TRAIN = TRAINER / "train.py"
SHOWN_BY = (VISIBLE, ORDER)
METRICS = "metrics.jsonl"
# Longest wait of one end of a broadcast for the other; a trainer sends once its engine is paused.
TRANSPORT_SECONDS = 120.0


@dataclass(frozen=True)
class FinishedTraining:
    """One training after it ended: its curves, or why it has none."""

    run: TrainingRun
    status: str
    failure: Failure | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    curves: Run | None = None
    # The file of the curves.
    metrics: Path | None = None


@dataclass(frozen=True)
class FinishedCanary:
    """Everything a judgement needs."""

    plan: CanaryPlan
    trainings: tuple[FinishedTraining, ...]
    setup: RunSetup
    bookkeeping: Bookkeeping

    def of_arm(self, name: str) -> tuple[FinishedTraining, ...]:
        """Return the trainings of an arm, by seed."""
        return tuple(training for training in self.trainings if training.run.arm.name == name)


def execute(plan: CanaryPlan, study_run: StudyRun) -> FinishedCanary:
    """Train every arm with every seed. One that fails does not stop the others.

    Raises OSError if the run directory cannot be written.
    """
    study_run.progress.expect(len(plan.runs))
    cells = [
        engine
        if isinstance(engine := study_run.engine(run.arm.version), Failure)
        else training_cell(plan, run, study_run, engine)
        for run in plan.runs
    ]
    if any(run.arm.updates.transport == "disk" for run in plan.runs):
        # Trainings run one after the other, and each has one copy.
        size = float32_bytes(study_run.context.model, study_run.context.revision)
        require_room(size, [study_run.folder / "weights handed over"])
    titles = [f"{number}/{len(plan.runs)} {run.name}" for number, run in enumerate(plan.runs, 1)]
    outcomes = study_run.cells.outcomes(list(zip(cells, titles, strict=True)))
    trainings = tuple(
        _finished(study_run, run, cell, outcome) for run, cell, outcome in zip(plan.runs, cells, outcomes, strict=True)
    )
    return FinishedCanary(plan, trainings, study_run.setup, study_run.books())


def _finished(study_run: StudyRun, run: TrainingRun, cell: Cell | Failure, outcome: Outcome) -> FinishedTraining:
    metrics = study_run.cells.directory(cell) / METRICS if isinstance(cell, Cell) else None
    curves = replace(read_curves(metrics), name=run.name) if metrics is not None and outcome.status == "ok" else None
    return FinishedTraining(run, outcome.status, outcome.failure, outcome.result, curves, metrics)


def read_curves(metrics: Path) -> Run:
    """Return the curves of a training, as `rlaudit curves` reads them."""
    log = open_run(str(metrics), None)
    (key,) = step_keys([log], None)
    return run_of(log, key)


def training_cell(plan: CanaryPlan, run: TrainingRun, study_run: StudyRun, environment: Environment) -> Cell:
    """Return the job of one arm and seed: the engine, and the trainer that it starts beside itself."""
    context, trainer = study_run.context, study_run.setup.trainer
    arm, training = run.arm, plan.recipe.training
    updates, forward = arm.updates, arm.trainer
    engine = plan.engine(arm)
    ranges = plan.recipe.objective
    correction = arm.correction or training.correction
    size = float32_bytes(context.model, context.revision)
    parts = ["train", "training_metrics", "handover", f"objectives/{training.objective}"]
    parts += [f"corrections/{correction}"] if correction else []
    reward = reward_file(training.reward)
    return engine_cell(
        context,
        environment,
        script=ENGINE.train,
        sources=(*ENGINE.train_with, *(TRAINER / f"{name}.py" for name in parts), reward),
        engine=engine,
        job={
            "transport": updates.transport,
            "path": loading_path(
                updates.path, updates.transport, engine.expected(context.machine, context.model).kind, context.device
            ),
            "seconds": TRANSPORT_SECONDS + seconds_to_move(size),
            "mode": updates.mode,
            "clear_cache": updates.clear_cache,
            "reset_cache": updates.reset_cache,
            "fp32_head": arm.fp32_head,
            "sampling": {
                "temperature": training.temperature,
                "max_tokens": training.max_tokens,
                "ignore_eos": training.ignore_eos,
            },
            "trainer": {
                "command": list(trainer.command),
                "script": shipped(TRAIN),
                # The trainer uses the GPUs of the engine, on any machine.
                "variables": {name: value for name, value in trainer.variables.items() if name not in SHOWN_BY},
                "job": {
                    "model": context.model,
                    "dtype": forward.dtype,
                    "head_dtype": forward.dtype if forward.head_dtype == "same" else forward.head_dtype,
                    "temperature": training.temperature,
                    "divides": forward.temperature == "divide",
                    "objective": training.objective,
                    "clip": list(ranges.gspo_epsilon if training.objective == "gspo" else ranges.ppo_epsilon),
                    "correction": correction,
                    "correction_limit": training.correction_limit,
                    "learning_rate": training.learning_rate,
                    "steps": training.steps,
                    "prompts_per_step": training.prompts_per_step,
                    "samples": training.samples,
                    "seed": run.seed,
                    "prompt_seed": plan.recipe.seed,
                    "prompt_token_ids": [list(prompt) for prompt in context.prompt_token_ids],
                    "answers": list(plan.answers),
                    "in_text": plan.in_text,
                    # As text: the machine that runs the cell need not have the user's files.
                    "reward": {"name": reward.stem, "source": reward.read_text(encoding="utf-8")},
                    "update_every": updates.every,
                    "lag": updates.lag,
                    "skip": list(updates.planted),
                },
            },
        },
        # A large model's weights are handed over after every update.
        timeout_minutes=context.timeout_minutes + seconds_to_move(size, training.steps // updates.every) / 60.0,
        identity={"trainer": {"name": trainer.spec.name, "lock": list(trainer.lock)}},
    )
