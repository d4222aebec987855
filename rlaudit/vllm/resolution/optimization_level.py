"""The optimization level: 2 since it exists (0.12.0), 0 with eager mode until 0.16."""

from rlaudit.vllm.milestones import OPTIMIZATION_LEVEL
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved


def apply(view: Resolution) -> Resolved | None:
    """Return 0 if eager mode lowers it."""
    if view.since(OPTIMIZATION_LEVEL) and not view.since("0.17.0") and view.value("enforce_eager") is True:
        return Resolved(0, "lowered by enforce_eager", overrules=True)
    return None


RESOLUTION = ResolutionRule(
    "optimization_level",
    (Function("vllm/config/vllm.py", "VllmConfig.__post_init__", ("optimization_level",)),),
    apply,
)
