"""The report of a canary: the verdicts, what became of each arm, which curve left first, and every claim."""

from typing import TYPE_CHECKING

from rlaudit.layers import Verdict
from rlaudit.rendering.outline import COST, Entries, Lines, Outline, Section, Table, listed, not_seen, verdicts
from rlaudit.report.figures import damaged, number
from rlaudit.report.parts.canary import Canary, CanaryArm
from rlaudit.report.parts.curves import CurveMetric

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
SEPARATIONS = (
    "Step at which each curve leaves the reference's band; in brackets, for one that stays, the smallest lasting "
    "difference that would have been seen"
)


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    canary = report["canary"]
    training, arms = canary.training, canary.arms
    return Outline(
        f"Canary: vLLM {report['versions']['from']} -> {report['versions']['to']} under training",
        [
            verdicts(report),
            Section("arms", "Arms, means over seeds of the first and last sixth of the steps", [_arms(canary)]),
            Section("named", "What each arm is", [Entries([(arm.name, [_said(arm)]) for arm in arms])]),
            listed("transports", "How the weights came", _transports(canary)),
            Section("separations", SEPARATIONS, _separations(canary)),
            Section("claims", "Claims", _claims(canary)),
            not_seen(report),
            listed("cost", COST, _cost(canary)),
            Section("in-short", "In short", [Lines(_in_short(canary))], closes=True, terminal_only=True),
        ],
        lead=report.get("description", ""),
        facts=[
            f"{len(arms)} arms, {sum(arm.ended for arm in arms)} trainings of {training['steps']} steps, "
            f"{training['objective']}"
        ],
    )


def _arms(canary: Canary) -> Table:
    rows = [
        [
            arm.name,
            arm.version,
            *(number(getattr(arm.levels, name)) for name in LEVELS),
            number(arm.lag),
        ]
        for arm in canary.arms
    ]
    open_ = frozenset(place for place, arm in enumerate(canary.arms) if _open(arm))
    return Table(ARMS, rows, marked=open_)


def _transports(canary: Canary) -> list[str]:
    """Return what brought each arm's weights; arms alike in a line. An older run does not say."""
    arms: dict[str, list[str]] = {}
    for arm in canary.arms:
        if told := arm.transport:
            ahead = arm.lag_bound
            met = f" (up to {ahead} batches ahead, {arm.met_in_flight or 0} requests met)" if ahead else ""
            arms.setdefault(told, []).append(f"{arm.name}{met}")
    return [f"{told}: {'; '.join(names)}" for told, names in arms.items()]


def _open(arm: CanaryArm) -> bool:
    return any(layer.verdict == Verdict.MISMATCH for layer in arm.layers)


def _said(arm: CanaryArm) -> str:
    """Return the first layer that does not match, and what names it."""
    for layer in arm.layers:
        if layer.verdict == Verdict.MISMATCH:
            cause = f" ({layer.cause})" if layer.cause else ""
            return f"{layer.layer}{cause}: {layer.because}"
    return "all three layers match" if arm.ended else "; ".join(arm.problems)


def _separations(canary: Canary) -> list[Table]:
    """Return a row for each arm, a column for each curve."""
    compared = [
        (arm.name, {_short(metric): metric for metric in curves.metrics})
        for arm in canary.arms
        if (curves := arm.curves)
    ]
    names = sorted({name for _, metrics in compared for name in metrics})
    rows = [[arm, *(_step(metrics.get(name)) for name in names)] for arm, metrics in compared]
    return [Table(("arm", *names), rows)] if rows else []


def _short(metric: CurveMetric) -> str:
    return metric.canonical or metric.name.rpartition("/")[2]


def _step(metric: CurveMetric | None) -> str:
    """Return the step at which a curve separated, or what the budget could not show."""
    if metric is None or metric.outcome == "unknown":
        return "unknown"
    if metric.outcome == "separated":
        return str(metric.detected_step)
    if metric.resolution is None:
        return NEVER
    return f"{NEVER} ({'x ' if metric.logarithm else ''}{number(metric.resolution)})"


def _claims(canary: Canary) -> list[Table]:
    rows = [[f"{one.says} ({one.arm})", HELD[one.verdict], one.because] for one in canary.claims]
    return [Table(CLAIMS, rows)] if rows else []


def _cost(canary: Canary) -> list[str]:
    spent = canary.cost
    lines = [
        f"{spent.seconds / 60:.1f} min, {spent.cells_run} cells run and {spent.cells_kept} kept, peak memory "
        f"of a cell {spent.peak_memory_mib / 1024:.1f} GiB"
    ]
    return [*lines, *([damaged(spent.damaged)] if spent.damaged else [])]


def _in_short(canary: Canary) -> list[str]:
    return [f"{arm.name}: {_said(arm)}" for arm in canary.arms]
