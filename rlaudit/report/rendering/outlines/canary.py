"""The report of a canary: which curve of each arm left the reference's band at which step, and every claim."""

from typing import TYPE_CHECKING

from rlaudit.curves.comparison import CurveMetric
from rlaudit.layers import Verdict
from rlaudit.report.figures import damaged, number
from rlaudit.report.parts.canary import Canary, CanaryArm
from rlaudit.report.rendering.outline import (
    COST,
    Block,
    Entries,
    Folded,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    not_seen,
    verdicts,
)
from rlaudit.report.rendering.outlines.curves import metrics_table
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

ARMS = ("arm", "vLLM", "reward begins", "ends", "clip rate", "k3", "entropy", "lag")
CLAIMS = ("claim", "verdict", "because")
HELD = {
    Verdict.MATCH: "holds",
    Verdict.MISMATCH: "does not hold",
    Verdict.INCONCLUSIVE: "not decided",
    Verdict.NOT_TESTED: "not tested",
}
LEVELS = ("reward_first", "reward_last", "clip_rate", "kl", "entropy_last")
NEVER = "-"
FIRST = "Which curve parted first"
SEPARATIONS = "Step at which each curve leaves the reference's band"
STAYS = "In brackets, for a curve that stays: the smallest lasting difference that would have been seen."


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    canary = report["canary"]
    training, arms = canary.training, canary.arms
    return Outline(
        f"Canary: vLLM {report['versions']['from']} -> {report['versions']['to']} under training",
        [
            Section("separations", SEPARATIONS, _separations(canary), leads=True),
            Section("claims", "Claims", _claims(canary), leads=True),
            Section("arms", "Arms, means over seeds of the first and last sixth of the steps", [_arms(canary)]),
            Section("metrics", "Metrics, arm by arm", _metrics(canary), page_only=True),
            verdicts(report),
            listed("transports", "How the weights came", _transports(canary)),
            not_seen(report),
            listed("cost", COST, _cost(canary)),
            Section("order", FIRST, [Entries([(arm.name, _order(arm)) for arm in arms[1:]])], closes=True),
        ],
        lead=report.get("description", ""),
        facts=[
            f"{counted(len(arms), 'arm')}, {counted(sum(arm.ended for arm in arms), 'training')} of "
            f"{training['steps']} steps, {training['objective']}"
        ],
    )


def _arms(canary: Canary) -> Table:
    rows = [
        [arm.name, arm.version, *(number(getattr(arm.levels, name)) for name in LEVELS), number(arm.lag)]
        for arm in canary.arms
    ]
    return Table(ARMS, rows)


def _transports(canary: Canary) -> list[str]:
    """Return a line for each transport of weights, with its arms. An older run does not have it."""
    arms: dict[str, list[str]] = {}
    for arm in canary.arms:
        if transport := arm.transport:
            bound = arm.lag_bound
            met = f" (up to {bound} batches ahead, {arm.met_in_flight or 0} requests met)" if bound else ""
            arms.setdefault(transport, []).append(f"{arm.name}{met}")
    return [f"{transport}: {'; '.join(names)}" for transport, names in arms.items()]


def _order(arm: CanaryArm) -> list[str]:
    """Return what separated first, or why nothing was compared."""
    if arm.curves is None:
        return list(arm.problems) or ["no curve was compared"]
    order = arm.curves.order
    return [f"{order.precedence}: {order.because}"]


def _metrics(canary: Canary) -> list[Folded]:
    """Return the table of `rlaudit curves` for each arm."""
    return [
        Folded(f"{arm.name} against {canary.arms[0].name}", metrics_table(arm.curves))
        for arm in canary.arms
        if arm.curves
    ]


def _separations(canary: Canary) -> list[Block]:
    """Return a row for each arm, a column for each curve, and what the brackets mean."""
    compared = [
        (arm.name, {_short(metric): metric for metric in curves.metrics})
        for arm in canary.arms
        if (curves := arm.curves)
    ]
    names = sorted({name for _, metrics in compared for name in metrics})
    rows = [[arm, *(_step(metrics.get(name)) for name in names)] for arm, metrics in compared]
    parted = frozenset(
        index
        for index, (_, metrics) in enumerate(compared)
        if any(metric.outcome == "separated" for metric in metrics.values())
    )
    return [Table(("arm", *names), rows, marked=parted), Prose([STAYS])] if rows else []


def _short(metric: CurveMetric) -> str:
    return metric.canonical or metric.name.rpartition("/")[2]


def _step(metric: CurveMetric | None) -> str:
    """Return the step at which a curve separated, or the smallest difference that would have been seen."""
    if metric is None or metric.outcome == "unknown":
        return "unknown"
    if metric.outcome == "separated":
        return str(metric.detected_step)
    if metric.resolution is None:
        return NEVER
    return f"{NEVER} ({'x ' if metric.logarithm else ''}{number(metric.resolution)})"


def _claims(canary: Canary) -> list[Table]:
    rows = [[f"{claim.says} ({claim.arm})", HELD[claim.verdict], claim.because] for claim in canary.claims]
    return [Table(CLAIMS, rows)] if rows else []


def _cost(canary: Canary) -> list[str]:
    spent = canary.cost
    lines = [
        f"{spent.seconds / 60:.1f} min, {spent.cells_run} cells run, {spent.cells_kept} reused from an earlier run, "
        f"peak memory of a cell {spent.peak_memory_mib / 1024:.1f} GiB"
    ]
    return [*lines, *([damaged(spent.damaged)] if spent.damaged else [])]
