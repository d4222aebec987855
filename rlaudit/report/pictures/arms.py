"""Every arm's distance from the trainer (k3), with its interval and the noise floor."""

from rlaudit.report.drawing.arm_forest import ArmForest
from rlaudit.report.picture import PictureKind

FOREST = ArmForest(
    "arms",
    "Distance from the trainer, arm by arm",
    "k3 in nats, mean(exp(d) − 1 − d) with d = trainer − rollout logprob, and its 95 % interval over prompts, on a "
    "logarithm.",
    metric="k3",
    floor="k2",
    floor_said=" Shaded: the noise floor (of k2, which is k3 where d is small); what lies in it cannot be told from "
    "zero.",
    column="k3 (nats) [95 % interval]",
    across="k3 (nats)",
    positive=True,
)
PICTURES = PictureKind("arms", 10, frozenset({"ablate", "compare"}), FOREST.pictures)
