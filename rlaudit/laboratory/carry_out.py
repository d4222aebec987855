"""A plan carried out in its run directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.place import Place, one_at_a_time
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.run_folder import RunFolder, opened
from rlaudit.laboratory.run_setup import prepare
from rlaudit.laboratory.study import FinishedT, PlanT, RecipeT, Study
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.text.progress import Progress


@contextmanager
def carried_out(
    study: Study[RecipeT, PlanT, FinishedT],
    plan: PlanT,
    folder: Path,
    accelerator: Accelerator,
    prompts: PromptSet,
    progress: Progress,
    given: GivenInterpreters = NONE_GIVEN,
    place: Place = one_at_a_time,
    look: Callable[[FinishedT], bool] | None = None,
) -> Iterator[tuple[FinishedT, RunFolder]]:
    """Carry the plan out in `folder`, which is locked until the report has been written.

    look: gets the unfinished run, if the study supports that, and returns whether to end it. Raises what `prepare`
    (run_setup.py) and the study raise.
    """
    with opened(folder) as run_folder:
        with place(run_folder.cells, accelerator, lambda sentence: progress.note(f"  {sentence}")) as executor:
            setup = prepare(plan, folder, accelerator, prompts, progress, given)
            run = StudyRun(plan, run_folder, setup, executor, progress)
            looked_at = study.looked_at
            finished = study.execute(plan, run) if look is None or looked_at is None else looked_at(plan, run, look)
        yield finished, run_folder
