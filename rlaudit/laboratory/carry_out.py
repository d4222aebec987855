"""A plan carried out in its run directory, or put together from the cells that several runs have left."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.merge import FromRuns, Planned
from rlaudit.laboratory.place import Place, one_at_a_time
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.run_folder import RunFolder, opened
from rlaudit.laboratory.run_setup import prepare
from rlaudit.laboratory.study import Plan, Study
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.progress import Progress


@contextmanager
def carried_out(
    study: Study,
    plan: Plan,
    folder: Path,
    accelerator: Accelerator,
    prompts: PromptSet,
    progress: Progress,
    given: GivenInterpreters = NONE_GIVEN,
    place: Place = one_at_a_time,
    elsewhere: Sequence[Path] = (),
    look: Callable[[Any], bool] | None = None,
) -> Iterator[tuple[Any, RunFolder]]:
    """Carry the plan out in `folder`, which is locked until the report has been written.

    elsewhere: folders of cells; those that are finished there do not run. look: gets the unfinished run, if the study
    supports that, and returns whether to end it. Raises what `prepare` (run_setup.py) and the study raise.
    """
    with opened(folder, elsewhere) as run_folder:
        with place(run_folder.cells, accelerator, lambda sentence: progress.note(f"  {sentence}")) as executor:
            setup = prepare(plan, folder, accelerator, prompts, progress, given)
            run = StudyRun(plan, run_folder, setup, executor, progress)
            shown = (look,) if look is not None and study.looks else ()
            finished = study.execute(plan, run, *shown)
        yield finished, run_folder


@contextmanager
def gathered(planned: Planned, folder: Path, progress: Progress) -> Iterator[tuple[Any, RunFolder]]:
    """Carry the plan of several runs out in `folder` from the cells that they left, without running any.

    Raises NotFinished naming the cells that none of them has.
    """
    with opened(folder, planned.cells) as run_folder:
        cells = FromRuns(run_folder.cells, planned.cells)
        run = StudyRun(planned.plan, run_folder, planned.setup(), cells, progress)
        yield planned.study.execute(planned.plan, run), run_folder
