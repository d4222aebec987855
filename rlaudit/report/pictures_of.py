"""All pictures of a document, in reading order."""

from collections.abc import Sequence

from rlaudit.discover import discover
from rlaudit.report import pictures
from rlaudit.report.picture import Missing, Picture, PictureKind, subject_of
from rlaudit.report.report import Report


def pictures_of(document: Report) -> tuple[Sequence[Picture], Sequence[Missing]]:
    """What can be drawn, and what cannot be and why."""
    kinds = sorted(discover(pictures, "PICTURES", PictureKind).values(), key=lambda kind: kind.place)
    subject = subject_of(document)
    found = [one for kind in kinds if subject in kind.subjects for one in kind.of(document)]
    return (
        [one for one in found if isinstance(one, Picture)],
        [one for one in found if isinstance(one, Missing)],
    )
