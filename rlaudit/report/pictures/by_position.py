"""|d| by position in the completion: what grows along it is carried from token to token, as stale state is."""

from collections.abc import Sequence

from rlaudit.report.compared_things import NO_TOKENS, groups
from rlaudit.report.drawing.grouped import grouped_picture
from rlaudit.report.picture import Missing, Picture, PictureKind
from rlaudit.report.report import Report

TITLE = "|d| by position"
CAPTION = (
    "Mean |d| of the tokens at each position of the completion (0 is its first token), in groups that widen; the band "
    "goes from the median to the 90th percentile."
)


def pictures(document: Report) -> Sequence[Picture | Missing]:
    """One for each block."""
    drawn = (
        grouped_picture(group, "by-position", TITLE, CAPTION, "by_position", "position in the completion")
        for group in groups(document)
    )
    return [one for one in drawn if one is not None] or [Missing(TITLE, NO_TOKENS)]


PICTURES = PictureKind("by-position", 50, frozenset({"ablate", "compare"}), pictures)
