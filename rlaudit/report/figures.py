"""Write the figures of a report always the same way: value, interval, sample size."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.parts.ablation import Arm
    from rlaudit.report.parts.bisection import ReleaseFigure
    from rlaudit.report.parts.releases import Cell
    from rlaudit.report.report import Report
    from rlaudit.statistics.measurement.contrast import Contrast
    from rlaudit.statistics.measurement.measure import Measurement

TITLES = {
    "mean_ratio_minus_one": "mean ratio - 1",
    "k2": "k2 of the residual",
    "k3": "k3 (nats)",
    "median_abs_log_ratio": "median |d|",
    "ppo_clip_fraction": "PPO clipped",
    "gspo_clip_fraction": "GSPO clipped",
}
# What tells arms apart fits 100 columns, and stands beside them while they run. A page has the rest, JSON all metrics.
TELLING = ("mean_ratio_minus_one", "k3")
FURTHER = ("median_abs_log_ratio", "gspo_clip_fraction")
HEADLINE = (*TELLING, *FURTHER)


def short_name(arm: str) -> str:
    """Return an arm's name as tables have it, without what all names of its kind begin with."""
    return arm.replace("candidate + ", "+ ").replace("parity - ", "- ")


def interval(figure: "Measurement | ReleaseFigure | Cell | None") -> str:
    """Return `1.93e-01 [1.8e-01, 2.1e-01]`, with a mark if the interval is not reliable."""
    return "-" if figure is None else _written(figure.value, figure.low, figure.high, getattr(figure, "reliable", True))


def difference(contrast: "Contrast | None") -> str:
    """Return the difference of two arms with its interval."""
    return "-" if contrast is None else _written(contrast.difference, contrast.low, contrast.high, contrast.reliable)


def _written(value: float | None, low: float | None, high: float | None, reliable: bool) -> str:
    if value is None or low is None or high is None:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]{'' if reliable else ' ?'}"


def number(value: float | None) -> str:
    """Return three digits, an exact zero as 0, and a dash if there is no value."""
    if value is None:
        return "-"
    return "0" if value == 0 else f"{value:.3g}"


def arm_state(arm: "Arm") -> str:
    """Return ok, unsupported, or failed and at which boundary. The report's `not_seen` has the whole reason."""
    return f"failed ({arm.error.boundary})" if arm.error and arm.status == "failed" else arm.status


def damaged(files: Sequence[str]) -> str:
    """Say which damaged files of an earlier run were made again."""
    return f"made again, since files of an earlier run were damaged: {'; '.join(files)}"


def cost(report: "Report") -> list[str]:
    """Say what the run took, in sentences."""
    run = report["run"]
    lines = [
        f"{run.seconds / 60:.1f} min; {run.cells_run} cells run, {run.cells_kept} reused from an earlier run; "
        f"peak memory of a cell {run.peak_memory_mib / 1024:.1f} GiB",
        f"{counted(run.sequences_sampled, 'sequence')} sampled; the trainer scored the {run.sequences_scored} "
        "distinct ones",
    ]
    lines += [damaged(run.damaged)] if run.damaged else []
    lines += [
        f"noise of the trainer ({floor.trainer}): {counted(floor.sequences, 'sequence')} scored alone and again in "
        f"their batch differ by mean |d| = {number(floor.mean_abs)}, max |d| = {number(floor.max_abs)}, k3 = "
        f"{number(floor.k3)}"
        for floor in run.micro_batch_floors
    ]
    return lines
