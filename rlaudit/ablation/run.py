"""A recipe carried out and judged, however often `ablate` does so: once, for each release, or in a bisection."""

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
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.shard_run import cells_of_shards
from rlaudit.laboratory.study import Study
from rlaudit.progress import Progress

if TYPE_CHECKING:
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class Ablation:
    """What all runs of a recipe have in common. `path` is the recipe's, `folder` where a run is kept.

    fails: whether a mismatch is to fail. until_verdict: whether a settled verdict ends a run.
    """

    study: Study
    path: Path
    accelerator: Accelerator
    prompts: PromptSet
    folder: Path
    place: Place
    progress: Progress
    fails: bool
    until_verdict: bool

    def report(
        self,
        recipe: AnyRecipe,
        given: GivenInterpreters,
        folder: Path | None = None,
        *,
        looked_at: bool = False,
        **more: Any,
    ) -> "Report":
        """Carry a recipe out with these interpreters, and return the report, which has these parts, too.

        folder: another one for the run. looked_at: whether the verdict is shown as it forms.
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
            cells_of_shards(self.folder),
            partial(self._look, plan) if looked_at else None,
        ) as (finished, kept):
            return reported(self.study, finished, kept, self.path, self.fails, **more)

    def _look(self, plan: Any, run: Any) -> bool:
        """Show how the layers stand while arms are still to come, and return whether that ends the run."""
        from rlaudit.ablation.as_it_forms import so_far
        from rlaudit.ablation.standing_table import standing_table

        known = so_far(run, plan)
        if not self.progress.stand(partial(standing_table, known, plan)):
            for line in (*known.arm_lines, *(f"  {line}" for line in known.layer_lines)):
                self.progress.note(f"  {line}")
        return self.until_verdict and known.is_settled


def reported(study: Study, finished: Any, kept: RunFolder, path: Path, fail_on_mismatch: bool, **more: Any) -> "Report":
    """Return the report of a finished run, which has these parts, too, and lies in the run directory then."""
    document, write_tokens = _judged(study.name, finished, path, fail_on_mismatch)
    document.update(more)  # type: ignore[typeddict-item]
    kept.finish(document, write_tokens)
    return document


def _judged(
    study: str, finished: Any, path: Path, fail_on_mismatch: bool
) -> "tuple[Report, Callable[[Path], None] | None]":
    """Return the report of a study by its name, and what writes the tokens of its arms, if it has any.

    path: the recipe, or the file that it was made of. What judges a study is imported when it is judged.
    """
    if study == "updates":
        from rlaudit.documents.weight_updates import document_of as of_updates

        return of_updates(finished, path, fail_on_mismatch=fail_on_mismatch), None
    if study == "canary":
        from rlaudit.documents.canary import document_of as of_trainings

        return of_trainings(finished, fails=fail_on_mismatch), None
    from rlaudit.diagnosis.diagnose import diagnose
    from rlaudit.diagnosis.tokens import tokens_of, write_tokens
    from rlaudit.documents.ablation import document_of

    diagnosis = diagnose(finished)
    tokens = tokens_of(diagnosis)
    return document_of(diagnosis, fail_on_mismatch), None if tokens is None else partial(write_tokens, tokens)
