"""A recipe carried out and judged."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.carry_out import carried_out
from rlaudit.laboratory.place import Place
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.recipe import AnyRecipe
from rlaudit.laboratory.studies.canary.run import FinishedCanary
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.study import AnyStudy
from rlaudit.severity import Threshold
from rlaudit.text.progress import Progress

if TYPE_CHECKING:
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class Ablation:
    """What all runs of a recipe have in common."""

    study: AnyStudy
    # The recipe's file.
    path: Path
    accelerator: Accelerator
    prompts: PromptSet
    # The run directory.
    folder: Path
    place: Place
    progress: Progress
    threshold: Threshold
    # Whether a settled verdict ends a run.
    until_verdict: bool

    def report(
        self,
        recipe: AnyRecipe,
        given: GivenInterpreters,
        folder: Path | None = None,
        *,
        looked_at: bool = False,
        **parts: Any,
    ) -> "Report":
        """Carry a recipe out with these interpreters, and return the report with `parts` added, which is in the run
        directory as well.

        folder: another run directory. looked_at: whether the verdict is shown as it forms.
        """
        plan = self.study.plan(recipe, self.accelerator, self.prompts)
        with carried_out(
            self.study,
            plan,
            folder or self.folder,
            self.accelerator,
            self.prompts,
            self.progress,
            given,
            self.place,
            partial(self._show_verdict, plan) if looked_at else None,
        ) as (finished, run_folder):
            document, write_tokens = judged(finished, self.path, self.threshold)
            document.update(parts)  # type: ignore[typeddict-item]
            run_folder.finish(document, write_tokens)
            return document

    def _show_verdict(self, plan: Any, run: Any) -> bool:
        """Show the verdict so far, and return whether it ends the run."""
        from rlaudit.ablation.as_it_forms import so_far
        from rlaudit.ablation.standing_table import standing_table

        standing = so_far(run, plan)
        if not self.progress.stand(partial(standing_table, standing, plan)):
            for line in (*standing.arm_lines, *(f"  {line}" for line in standing.layer_lines)):
                self.progress.note(f"  {line}")
        return self.until_verdict and standing.is_settled


def judged(finished: Any, path: Path, threshold: Threshold) -> "tuple[Report, Callable[[Path], None] | None]":
    """Return the report of what has finished, and what writes the tokens of its arms, if it has any.

    path: the recipe, or the file that it was made of.
    """
    if isinstance(finished, FinishedUpdates):
        from rlaudit.report.of_updates import document_of as of_updates

        return of_updates(finished, path, fail_on_mismatch=threshold.fails), None
    if isinstance(finished, FinishedCanary):
        from rlaudit.report.of_trainings import document_of as of_trainings

        return of_trainings(finished, fails=threshold.fails), None
    from rlaudit.diagnosis.diagnose import diagnose
    from rlaudit.diagnosis.tokens import tokens_of, write_tokens
    from rlaudit.report.of_arms import document_of

    diagnosis = diagnose(finished)
    tokens = tokens_of(diagnosis)
    return document_of(diagnosis, threshold), None if tokens is None else partial(write_tokens, tokens)
