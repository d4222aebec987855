"""The report of a comparison of training curves: what separated and in which order, then what it rests on."""

from typing import TYPE_CHECKING

from rlaudit.curves.comparison import CurveMetric
from rlaudit.report.figures import number
from rlaudit.report.parts.curves import Curves
from rlaudit.report.rendering.outline import Entries, Indents, Lines, Outline, Section, Table, listed, not_seen

if TYPE_CHECKING:
    from rlaudit.report.report import Report

HEADER = ("metric", "separated at step", "begins about", "reference", "candidate", "steps compared")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    curves = report["curves"]
    compared = _compared(curves)
    table = metrics_table(curves)
    return Outline(
        title(curves),
        [
            Section("order", f"Order: {curves.order.precedence}", [Lines(_order(curves), mark="")], leads=True),
            Section("metrics", "Metrics", [table] if table.rows else []),
            Section("meaning", "What they are (d = trainer - rollout logprob, r = exp "
            "d)", [Entries([(metric.name, _details(metric)) for metric in compared])]
                    if compared else []),
            listed("not-used", "Not used", _problems(curves), mark=""),
            not_seen(report, mark=""),
            listed("method", "Method", _method(curves), mark=""),
        ],
        facts=[f"{len(compared)} metrics compared"],
        about=_runs(curves),
        indents=Indents(line=2, table=2),
    )  # fmt: skip


def _compared(curves: Curves) -> list[CurveMetric]:
    return [metric for metric in curves.metrics if metric.outcome != "unknown"]


def metrics_table(curves: Curves) -> Table:
    """Return a row for each metric that could be compared, those that separated marked."""
    compared = _compared(curves)
    separated = frozenset(index for index, metric in enumerate(compared) if metric.outcome == "separated")
    return Table(HEADER, [_row(metric) for metric in compared], marked=separated)


def title(curves: Curves) -> str:
    """Return how many metrics separated, of how many, and which runs were compared."""
    compared = _compared(curves)
    separated = sum(metric.outcome == "separated" for metric in compared)
    outcome = f"{separated} of {len(compared)} metrics separated" if compared else "no metric could be compared"
    candidates, references = (", ".join(run.name for run in side) for side in (curves.candidates, curves.reference))
    return f"{outcome} between {candidates} and the reference ({references})"


def _runs(curves: Curves) -> list[str]:
    """Return what each run is and how it was read."""
    return [
        f"{role} {run.name}: {run.sink}, {run.metrics} metrics, steps {run.first_step} to {run.last_step} ({run.step})"
        for role, runs in (("reference", curves.reference), ("candidate", curves.candidates))
        for run in runs
    ]


def _row(metric: CurveMetric) -> list[str]:
    separation = ["not separated", "", "", ""]
    if metric.outcome == "separated":
        levels = (number(metric.reference_level), number(metric.candidate_level))
        separation = [str(metric.detected_step), str(metric.onset_step), *levels]
    steps = metric.steps
    averaged = f", means of {metric.averaged_steps}" if (metric.averaged_steps or 1) > 1 else ""
    return [metric.name, *separation, f"{steps.count} ({steps.first} to {steps.last}){averaged}" if steps else ""]


def _details(metric: CurveMetric) -> list[str]:
    """Return what a metric is, why it has its outcome, and what else was seen."""
    lines = ["this is a name of no framework that rlaudit knows, so its definition is not known"]
    if metric.canonical is not None:
        weights = f"Trainer logprobs are {metric.trainer_logprobs}" if metric.trainer_logprobs else ""
        clipping = f"Logged {metric.clipping}" if metric.clipping else ""
        meaning = ". ".join(filter(None, (metric.definition, clipping, weights)))
        lines = [f"{metric.canonical} ({metric.framework}): {meaning}"]
    if metric.candidate_name not in (None, metric.name):
        lines.append(f"in the candidate: {metric.candidate_name}")
    lines.append(metric.because + (" (tested on the logarithm)" if metric.logarithm else ""))
    return [*lines, *metric.notes]


def _order(curves: Curves) -> list[str]:
    """Return which separated first, what that suggests, what to do."""
    order = curves.order
    labelled = (("", order.because), ("suggests: ", order.suggests), ("next: ", order.next))
    return [f"{label}{text}" for label, text in labelled if text]


def _problems(curves: Curves) -> list[str]:
    """Return what the logs hold that was not used."""
    return [
        f"{problem.path}{', ' + problem.place if problem.place else ''}: {problem.message}"
        for run in (*curves.reference, *curves.candidates)
        for problem in run.problems
    ]


def _method(curves: Curves) -> list[str]:
    """Return what the band is made of and what the test assumes."""
    return [
        f"the band is the {curves.band}. The probability of a false alarm anywhere in this report is {curves.alpha:g}",
        *curves.assumptions,
    ]
