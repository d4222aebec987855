"""The report of a comparison of curves; its part is under the key `curves`."""

from typing import TYPE_CHECKING

from rlaudit.curves.comparison import Comparison, CurveMetric, Outcome
from rlaudit.curves.curve import Run
from rlaudit.curves.logged_metric import Group
from rlaudit.curves.order import order_of
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.curves import CurveRun, Curves
from rlaudit.rules.advisories import in_some_releases

if TYPE_CHECKING:
    from rlaudit.report.report import Report

ASSUMPTIONS = (
    "assumed: both runs begin at the same checkpoint, would follow the same curve without the change, and log evenly "
    "spaced steps",
    "assumed: noise is an AR(1) over steps, plus a slow AR(1) that is another one in each seed. Its size may change "
    "along the run",
    "assumed: the curves are finished and tested once; repeated tests of a growing run raise more false alarms",
)
ONE_REFERENCE = (
    "assumed: seeds of the reference drift apart by up to 2 standard deviations of the step noise. One reference run "
    "cannot show this drift; two or more seeds would measure it"
)


def document_of(comparison: Comparison, fail: bool) -> "Report":
    """Return the report of `rlaudit curves`. fail: whether a separation makes the exit code 1."""
    return {
        **new_report("curves", comparison.exit_code(fails=fail), not_seen=_not_seen(comparison)),
        "curves": curves_of(comparison),
    }


def curves_of(comparison: Comparison) -> Curves:
    """Return what is reported of a comparison of curves, by `rlaudit curves` and of every arm of a canary."""
    single = len(comparison.references) == 1
    return Curves(
        reference=[_run(run) for run in comparison.references],
        candidate=_run(comparison.candidates[0]),
        candidates=[_run(run) for run in comparison.candidates],
        alpha=comparison.alpha,
        band="step noise of the reference, detrended" if single else "spread between the reference's seeds",
        assumptions=[*ASSUMPTIONS, *([ONE_REFERENCE] if single else [])],
        metrics=sorted(comparison.results, key=_reading_order),
        order=order_of(comparison),
    )


def _reading_order(result: CurveMetric) -> tuple[int, int, str]:
    """Return a key by which what separated first comes first, and what is unknown last."""
    return list(Outcome).index(result.outcome), result.detected_step or 0, result.name


def _run(run: Run) -> CurveRun:
    steps = [curve.steps for curve in run.curves.values() if curve.steps.size]
    return CurveRun(
        name=run.name,
        sink=run.sink,
        files=[str(path) for path in run.paths],
        step=run.step_name,
        first_step=min((int(steps_N[0]) for steps_N in steps), default=None),
        last_step=max((int(steps_N[-1]) for steps_N in steps), default=None),
        metrics=len(run.curves),
        problems=run.problems,
    )


def _not_seen(comparison: Comparison) -> list[str]:
    lines = [f"{result.name}: {result.because}" for result in comparison.results if result.outcome is Outcome.UNKNOWN]
    groups = {result.group for result in comparison.results if result.outcome is not Outcome.UNKNOWN}
    if Group.LOGPROBS not in groups:
        lines.append(
            "the difference between trainer and rollout logprobs was not seen: no metric of it could be compared"
        )
    if comparison.left:
        shown = ", ".join(comparison.left[:12]) + (", ..." if len(comparison.left) > 12 else "")
        lines.append(
            f"{len(comparison.left)} common keys whose meaning is not known here were not compared ({shown}); "
            "--metric NAME compares one"
        )
    lines.append("a change of spread without a change of the mean was not looked for: only means are tested")
    runs = (*comparison.references, *comparison.candidates)
    return [*lines, *in_some_releases(dict.fromkeys(key for run in runs for key in run.curves))]
