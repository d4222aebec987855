"""Every arm's distance from the trainer (k3), and by how many ten-thousandths its mean importance ratio is not 1."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.rendering.drawing.forest import ArmForest
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind

if TYPE_CHECKING:
    from rlaudit.report.report import Report

DISTANCE = ArmForest(
    "arms",
    "Distance from the trainer, arm by arm",
    "k3 in nats, mean(exp(d) − 1 − d) with d = trainer − rollout logprob, and its 95 % interval over prompts, on a "
    "logarithm.",
    metric="k3",
    floor="k2",
    floor_said=" Shaded: the noise of repeats (of k2, which is k3 if d is small); what lies in it may be zero.",
    column="k3 (nats) [95 % interval]",
    across="k3 (nats)",
    positive=True,
)
RATIO_DEVIATION = ArmForest(
    "ratio-deviation",
    "Ratio deviation × 10⁴",
    "mean exp(d) − 1, times 10 000, with its 95 % interval over prompts. It is 0 when the reported logprobs are those "
    "the tokens were sampled with, under any noise.",
    metric="mean_ratio_minus_one",
    floor="mean_ratio_minus_one",
    floor_said=" Shaded: the noise of repeats.",
    column="× 10⁴ [95 % interval]",
    across="(mean ratio − 1) × 10⁴",
    positive=False,
    times=1e4,
)


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return the distances of all blocks, then their ratios."""
    return [*DISTANCE.pictures(report), *RATIO_DEVIATION.pictures(report)]


PICTURES = PictureKind("arms", 10, frozenset({"ablate", "compare"}), pictures)
