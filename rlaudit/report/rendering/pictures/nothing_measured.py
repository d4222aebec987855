"""Why a report that compares no arms has no pictures of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.rendering.picture import WEIGHT_UPDATES, Missing, Picture, PictureKind, subject_of

if TYPE_CHECKING:
    from rlaudit.report.report import Report

TITLE = "Arms and tokens"
REASONS = {
    "inspect": "an inspection reads settings and measures nothing; rlaudit ablate on the same config does",
    "diagnose": "a diagnosis reads other reports; rlaudit report RUN --output html draws theirs",
    WEIGHT_UPDATES: "sequences of calls are compared with each other, not arms with a trainer; see the tables",
}


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return the reason."""
    return [Missing(TITLE, REASONS[subject_of(report)])]


PICTURES = PictureKind("nothing-measured", 100, frozenset(REASONS), pictures)
