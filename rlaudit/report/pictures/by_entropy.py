"""|d| by the entropy of the trainer's distribution: rounding in the head moves sure tokens less than open ones."""

from collections.abc import Sequence

from rlaudit.report.compared_things import NO_TOKENS, groups
from rlaudit.report.drawing.grouped import grouped_picture
from rlaudit.report.picture import Missing, Picture, PictureKind
from rlaudit.report.report import Report

TITLE = "|d| by entropy"
CAPTION = (
    "Mean |d| of the tokens by the entropy of the trainer's distribution before they were drawn; the band goes from "
    "the median to the 90th percentile."
)
NO_ENTROPY = "the tokens carry no trainer_entropy"


def pictures(document: Report) -> Sequence[Picture | Missing]:
    """One for each block that has entropies."""
    found = groups(document)
    drawn = (grouped_picture(group, "by-entropy", TITLE, CAPTION, "by_entropy", "entropy (nats)") for group in found)
    missing = NO_ENTROPY if any(group.main for group in found) else NO_TOKENS
    return [one for one in drawn if one is not None] or [Missing(TITLE, missing)]


PICTURES = PictureKind("by-entropy", 60, frozenset({"ablate", "compare"}), pictures)
