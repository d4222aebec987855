"""How far the mean importance ratio of every arm is from 1, in ten-thousandths."""

from rlaudit.report.drawing.arm_forest import ArmForest
from rlaudit.report.picture import PictureKind

FOREST = ArmForest(
    "ratio-deviation",
    "Ratio deviation × 10⁴",
    "mean exp(d) − 1, times 10 000, with its 95 % interval over prompts. It is 0 when the reported logprobs are those "
    "the tokens were sampled with, whatever the noise.",
    metric="mean_ratio_minus_one",
    floor="mean_ratio_minus_one",
    floor_said=" Shaded: the noise floor.",
    column="× 10⁴ [95 % interval]",
    across="(mean ratio − 1) × 10⁴",
    positive=False,
    times=1e4,
)
PICTURES = PictureKind("ratio-deviation", 20, frozenset({"ablate", "compare"}), FOREST.pictures)
