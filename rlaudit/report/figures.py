"""How figures of the document are written: value, interval, sample size, always the same way."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlaudit.measurement.contrast import Contrast
    from rlaudit.measurement.measure import Measurement
    from rlaudit.report.parts.ablation import Arm
    from rlaudit.report.parts.bisection import ReleaseFigure
    from rlaudit.report.parts.releases import Cell
    from rlaudit.report.report import Report

TITLES = {
    "mean_ratio_minus_one": "mean ratio - 1",
    "k2": "k2 of the residual",
    "k3": "k3 (nats)",
    "median_abs_log_ratio": "median |d|",
    "ppo_clip_fraction": "PPO clipped",
    "gspo_clip_fraction": "GSPO clipped",
}
# What every reader looks at first; the JSON has all metrics.
HEADLINE = ("mean_ratio_minus_one", "k3", "median_abs_log_ratio", "gspo_clip_fraction")


def interval(found: "Measurement | ReleaseFigure | Cell | None") -> str:
    """`1.93e-01 [1.8e-01, 2.1e-01]`, with a mark where the interval is not reliable."""
    return "-" if found is None else _written(found.value, found.low, found.high, getattr(found, "reliable", True))


def difference(found: "Contrast | None") -> str:
    """Return the difference of two arms, as `interval` writes a figure."""
    return "-" if found is None else _written(found.difference, found.low, found.high, found.reliable)


def _written(value: float | None, low: float | None, high: float | None, reliable: bool) -> str:
    if value is None or low is None or high is None:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]{'' if reliable else ' ?'}"


def number(value: float | None) -> str:
    """Three digits, an exact zero as 0, and a dash for what does not exist."""
    if value is None:
        return "-"
    return "0" if value == 0 else f"{value:.3g}"


def arm_state(arm: "Arm") -> str:
    """ok, unsupported, or failed and where; the whole reason is in what the report says was not seen."""
    return f"failed at {arm.error.boundary}" if arm.error and arm.status == "failed" else arm.status


def damaged(files: Sequence[str]) -> str:
    """Say which files were not as an earlier run had left them."""
    return f"made again, since files of an earlier run were damaged: {'; '.join(files)}"


def cost(document: "Report") -> list[str]:
    """Say what the run took, in sentences."""
    run = document["run"]
    lines = [
        f"{run.seconds / 60:.1f} min, {run.cells_run} cells run and {run.cells_kept} kept, "
        f"peak memory of a cell {run.peak_memory_mib / 1024:.1f} GiB",
        f"{run.sequences_sampled} sequences, {run.sequences_scored} distinct ones scored by the trainer",
    ]
    lines += [damaged(run.damaged)] if run.damaged else []
    lines += [
        f"trainer against itself ({floor.trainer}; {floor.sequences} sequences alone and in their batch): "
        f"mean |d| {number(floor.mean_abs)}, max {number(floor.max_abs)}, k3 {number(floor.k3)}"
        for floor in run.micro_batch_floors
    ]
    return lines
