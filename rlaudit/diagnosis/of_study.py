"""The report of a finished study, whichever it is: what its figures mean is said above the laboratory."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def judged(
    study: str, finished: Any, path: Path, fail_on_mismatch: bool
) -> "tuple[Report, Callable[[Path], None] | None]":
    """Return the report of a study by its name, and what writes the tokens of its arms, if it has any.

    path: the recipe, or the file that it was made of. What judges a study is imported when it is judged.
    """
    if study == "updates":
        from rlaudit.laboratory.studies.updates.document import document_of as of_updates

        return of_updates(finished, path, fail_on_mismatch=fail_on_mismatch), None
    if study == "canary":
        from rlaudit.laboratory.studies.canary.document import document_of as of_trainings

        return of_trainings(finished, fail_on_mismatch=fail_on_mismatch), None
    from rlaudit.diagnosis.diagnose import diagnose
    from rlaudit.diagnosis.document import document_of
    from rlaudit.diagnosis.tokens import tokens_of, write_tokens

    diagnosis = diagnose(finished)
    tokens = tokens_of(diagnosis)
    return document_of(diagnosis, fail_on_mismatch), None if tokens is None else partial(write_tokens, tokens)
