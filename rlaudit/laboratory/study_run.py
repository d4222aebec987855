"""A run of a study under way.

The run directory (run_folder.py) is the only state and readable by hand. A cell's folder has job.json, identity.json,
events.jsonl, log.txt, samples.jsonl or scores.npz, result.json, usage.json, and seal.json.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import Executor
from rlaudit.engines.cells.launch import Failure
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.errors import NotFinished
from rlaudit.laboratory.rendered_inputs import RenderedInputs, chat_shapes, rendered_inputs
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.run_setup import RunSetup, tokenize_cell
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.scoring import (
    Checkpoint,
    Scores,
    ScoringBatch,
    ScoringRequest,
    read_scores,
    scoring_cell,
    trial_batch,
)
from rlaudit.laboratory.study import Plan
from rlaudit.text.progress import Progress

WAYS_OUT = {"out-of-memory": "Take a smaller model (--model), more or larger GPUs, or bfloat16 (trainer.dtype)"}
OTHER_WAY_OUT = "Another interpreter can be given: --trainer-python COMMAND"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What short trainings, or an audit of weight updates, took."""

    seconds: float
    cells_run: int
    cells_kept: int
    damaged: Sequence[str]
    peak_memory_mib: float


@dataclass(frozen=True)
class Bookkeeping:
    """The cost of a run."""

    seconds: float
    cell_seconds: float
    cells_run: int
    cells_kept: int
    sequences_sampled: int
    sequences_scored: int
    peak_memory_mib: float
    set_up_seconds: float
    # Sentences about files that were not as an earlier run had left them; their cells or reports were made again.
    damaged: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost:
        """What is reported of it without the sequences of arms."""
        return Cost(
            seconds=self.seconds,
            cells_run=self.cells_run,
            cells_kept=self.cells_kept,
            damaged=self.damaged,
            peak_memory_mib=self.peak_memory_mib,
        )


class StudyRun:
    """A run under way. `context` is what its cells share, `cells` runs them or keeps finished ones."""

    def __init__(self, plan: Plan, folder: RunFolder, setup: RunSetup, executor: Executor, progress: Progress) -> None:
        """Begin: write the plan, turn the prompts into token ids, try the trainer.

        Raises NotFinished if the model's tokenizer cannot be read or the trainer cannot score, OSError if the run
        directory cannot be written.
        """
        self._started = time.monotonic()
        self._folder = folder
        self._scored = 0
        self.setup, self.progress = setup, progress
        folder.begin(_as_document(plan, setup))
        for sentence in folder.damaged:
            progress.note(f"  {'damaged':<11} {sentence}; it is made again")
        self.cells = Runner(folder, executor, progress)
        self._trust_remote_code = plan.recipe.trust_remote_code
        tokens = self.cells.needed(
            self._rendering(setup.trainer),
            self._of_prompts,
            f"the tokenizer of {setup.model.path} cannot be used",
        )
        self._rendered_by_trainer = rendered_inputs("the trainer", tokens)
        self.context: RolloutContext = setup.rollout_context(plan.recipe, tokens.result["prompt_token_ids"])
        # The first way of scoring alone: what fails in another dtype of the same model leaves all arms to be kept.
        for request in plan.scoring[:1]:
            self._try_trainer(request)

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self._folder.folder

    def engine(self, version: str) -> Environment | Failure:
        """Return the environment of an engine, or why it has none."""
        return self.setup.engines[version]

    def rendered_inputs(self, versions: Sequence[str]) -> list[RenderedInputs]:
        """Return what the trainer and the environments of these engines make of the same prompts and conversations."""
        trainer = self._rendered_by_trainer
        if not trainer.prompts:
            return [trainer]  # the prompts are token ids
        engines = {version: engine for version in versions if isinstance(engine := self.engine(version), Environment)}
        cells = [
            (self._rendering(engine), f"{self._of_prompts}, by the tokenizer beside vLLM {version}")
            for version, engine in engines.items()
        ]
        outcomes = zip(engines, self.cells.outcomes(cells), strict=True)
        return [trainer, *(rendered_inputs(f"vLLM {version}", outcome) for version, outcome in outcomes)]

    def scores(self, titled: Sequence[tuple[ScoringBatch, str, Checkpoint | None]]) -> list[Scores]:
        """Return the trainer's scores of these titled batches, with the weights of a checkpoint or the model's.

        Raises NotFinished if the trainer cannot score one.
        """
        self._scored += sum(len(batch.sequences) for batch, _, _ in titled)
        cells = [scoring_cell(self.context, batch, self.setup.trainer, weights) for batch, _, weights in titled]
        outcomes = self.cells.outcomes([(cell, title) for cell, (_, title, _) in zip(cells, titled, strict=True)])
        scores = []
        for cell, (batch, _, weights), outcome in zip(cells, titled, outcomes, strict=True):
            subject = "the sequences" if weights is None else f"with {weights.path}"
            ended = self.cells.settled(outcome, cell, f"the trainer could not score {subject}")
            scores.append(read_scores(self.cells.directory(cell), batch, ended.result))
        return scores

    def books(self, sequences_sampled: int = 0) -> Bookkeeping:
        """Return what the run has cost so far. sequences_sampled: to be scored, equal ones included."""
        return Bookkeeping(
            seconds=time.monotonic() - self._started,
            cell_seconds=self.cells.cell_seconds,
            cells_run=self.cells.cells_run,
            cells_kept=self.cells.cells_kept,
            sequences_sampled=sequences_sampled,
            sequences_scored=self._scored,
            peak_memory_mib=self.cells.peak_memory_mib,
            set_up_seconds=self.setup.set_up_seconds,
            damaged=tuple(self._folder.damaged),
        )

    @property
    def _of_prompts(self) -> str:
        return f"tokens of the {len(self.setup.prompts.prompts)} prompts"

    def _rendering(self, environment: Environment) -> Cell:
        return tokenize_cell(
            self.setup.model,
            environment,
            self.setup.prompts,
            trust_remote_code=self._trust_remote_code,
            shapes=chat_shapes(),
        )

    def _try_trainer(self, request: ScoringRequest) -> None:
        """Score the beginnings of the first prompts. Raises NotFinished if the trainer cannot do that here."""
        settings, trainer = request.trainer, self.setup.trainer
        way = f"{settings.dtype} body, {settings.resolved_head_dtype} head, {settings.attention} attention"
        cell = scoring_cell(self.context, trial_batch(request, self.context.prompt_token_ids), trainer)
        failure = self.cells.outcome(cell, f"trainer tried: {way}").failure
        if failure is not None:
            raise NotFinished(
                f"the trainer ({trainer.spec.name}) cannot score {self.context.model} ({way}): {failure.message}",
                f"{WAYS_OUT.get(failure.boundary, OTHER_WAY_OUT)}. Its log: {self.cells.directory(cell)}/log.txt",
            )


def _as_document(plan: Plan, setup: RunSetup) -> dict[str, Any]:
    """Return plan.json: the recipe as it was understood, and everything needed to repeat the run."""
    return {
        "recipe": plan.recipe.model_dump(mode="json", by_alias=True),
        "arms": plan.arms(),
        "provenance": setup.provenance(),
    }
