"""How every study is run: write the plan, turn prompts into token ids, try the trainer, run the cells.

The run directory (run_folder.py) is the only state and readable by hand. A cell's folder has job.json, identity.json,
events.jsonl, log.txt, samples.jsonl or scores.npz, result.json, usage.json, and seal.json.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.merge import Planned
from rlaudit.laboratory.place import Place, one_at_a_time
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_folder import RunFolder, opened
from rlaudit.laboratory.run_setup import RunSetup, prepare
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.scoring import Checkpoint, Scores, ScoringBatch, read_scores, scoring_cell
from rlaudit.laboratory.study import Finished, Plan, SomePlan, Study
from rlaudit.laboratory.trial import try_trainer
from rlaudit.progress import Progress


@dataclass(frozen=True)
class Bookkeeping:
    """What a run cost: seconds in all and inside cells, starts, and how many sequences were requested and scored.

    damaged: files that were not as an earlier run had left them, in sentences; the cells or reports they belong to were
    made again.
    """

    seconds: float
    cell_seconds: float
    cells_run: int
    cells_kept: int
    sequences_asked: int
    sequences_scored: int
    peak_memory_mib: float
    set_up_seconds: float
    damaged: tuple[str, ...] = ()


class StudyRun:
    """A run under way. `context` is what its cells share, `runner` runs them or keeps what is there."""

    def __init__(self, plan: Plan, folder: RunFolder, setup: RunSetup, progress: Progress) -> None:
        """Begin. Raises NotFinished when the model's tokenizer cannot be read, or when the trainer cannot score, which
        is tried before the first engine starts; OSError if the run directory cannot be written."""
        self._started = time.monotonic()
        self._folder = folder
        self._asked = self._scored = 0
        self.setup, self.progress = setup, progress
        folder.begin(_as_document(plan, setup))
        for said in folder.damaged:
            progress.note(f"  {'damaged':<11} {said}; it is made again")
        self.runner = Runner(folder, setup.executor, progress)
        self.context: RolloutContext = setup.rollout_context(plan.recipe, self.runner.needed)
        try_trainer(self.runner, self.context, plan.scoring, setup.trainer)

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self._folder.folder

    def scores(self, batch: ScoringBatch, title: str, checkpoint: Checkpoint | None = None) -> Callable[[], Scores]:
        """Ask the trainer to score a batch. The function that is returned waits for the answer, and raises NotFinished
        if the trainer cannot score."""
        self._asked += batch.asked
        self._scored += len(batch.sequences)
        cell = scoring_cell(self.context, batch, self.setup.trainer, checkpoint)
        complaint = "the trainer could not score " + (
            "the sequences" if checkpoint is None else f"with {checkpoint.path}"
        )
        outcomes = self.runner.outcomes([(cell, title)])

        def answer() -> Scores:
            outcome = self.runner.settled(next(outcomes), cell, complaint)
            return read_scores(self.runner.directory(cell), batch, outcome.result)

        return answer

    def asked_again(self, sequences: int) -> None:
        """Count requested sequences that equal others which the trainer was asked to score already."""
        self._asked += sequences

    def engine(self, version: str) -> Environment | Failure:
        """Return the environment of an engine, or why there is none for it."""
        return self.setup.engines[version]

    def outcomes(self, asked: Sequence[tuple[Cell | Failure, str]]) -> Iterator[Outcome]:
        """Yield the outcome of each cell, which comes with its title; a Failure in a cell's place is its own outcome.

        All cells that have to run are submitted now, before the first is waited for.
        """
        outcomes = self.runner.outcomes([(cell, title) for cell, title in asked if isinstance(cell, Cell)])

        def answers() -> Iterator[Outcome]:
            for cell, _ in asked:
                if isinstance(cell, Cell):
                    yield next(outcomes)
                else:
                    self.progress.done()
                    status = "unsupported" if cell.boundary == "unsupported" else "failed"
                    yield Outcome(status, {}, cell, {})

        return answers()

    def books(self) -> Bookkeeping:
        """Return what the run has cost so far."""
        return Bookkeeping(
            seconds=time.monotonic() - self._started,
            cell_seconds=self.runner.cell_seconds,
            cells_run=self.runner.cells_run,
            cells_kept=self.runner.cells_kept,
            sequences_asked=self._asked,
            sequences_scored=self._scored,
            peak_memory_mib=self.runner.peak_memory_mib,
            set_up_seconds=self.setup.set_up_seconds,
            damaged=tuple(self._folder.damaged),
        )


@contextmanager
def carried_out(
    study: Study[Any, SomePlan, Finished],
    plan: SomePlan,
    folder: Path,
    accelerator: Accelerator,
    prompts: PromptSet,
    progress: Progress,
    given: GivenInterpreters = NONE_GIVEN,
    place: Place = one_at_a_time,
    elsewhere: Sequence[Path] = (),
    look: Callable[[Finished], bool] | None = None,
) -> Iterator[tuple[Finished, RunFolder]]:
    """Carry the plan out in `folder`, which this process has to itself until the report lies there. Cells run at
    `place`, except those that are finished in folders of cells `elsewhere`. look: is shown the run as far as it is, if
    the study does that, and returns whether that is enough.

    Raises what `prepare` raises (run_setup.py), and what the study does.
    """
    with opened(folder, elsewhere) as kept:
        with place(kept.cells, accelerator, lambda sentence: progress.note(f"  {sentence}")) as executor:
            setup = prepare(plan, folder, accelerator, prompts, progress, executor, given)
            shown = (look,) if look is not None and study.looks else ()
            finished = study.execute(plan, kept, setup, progress, *shown)
        yield finished, kept


@contextmanager
def gathered(planned: Planned, folder: Path, progress: Progress) -> Iterator[tuple[Any, RunFolder]]:
    """Carry the plan of several runs out in `folder` from the cells that they left, without running any.

    Raises NotFinished naming the cells that none of them has.
    """
    with opened(folder, planned.cells) as kept:
        yield planned.study.execute(planned.plan, kept, planned.setup(kept.cells), progress), kept


def _as_document(plan: Plan, setup: RunSetup) -> dict[str, Any]:
    """Return the recipe as it was understood, and everything needed to repeat the run."""
    if setup.written is not None:
        return dict(setup.written)
    return {
        "recipe": plan.recipe.model_dump(mode="json", by_alias=True),
        "arms": plan.arms(),
        "provenance": setup.provenance(),
        "made_with": setup.made_with(),
    }
