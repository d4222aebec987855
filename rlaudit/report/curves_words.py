"""A comparison of curves in words, for every format that people read."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlaudit.printable import one_line
from rlaudit.report.figures import number
from rlaudit.report.report_format import Document

Metric = Mapping[str, Any]
HEADER = ("metric", "separated at step", "begins about", "reference", "candidate", "steps compared")


def headline(document: Document) -> str:
    """How many metrics separated, of how many that could be compared."""
    curves = document["curves"]
    outcomes = [metric["outcome"] for metric in curves["metrics"]]
    compared = len(outcomes) - outcomes.count("unknown")
    found = outcomes.count("separated")
    what = f"{found} of {compared} metrics separated" if compared else "nothing could be compared"
    return f"{what}: {curves['candidate']['name']} against {', '.join(run['name'] for run in curves['reference'])}"


def runs(document: Document) -> list[str]:
    """What each run is and how it was read."""
    curves = document["curves"]
    named = [*(("reference", run) for run in curves["reference"]), ("candidate", curves["candidate"])]
    return [
        f"{role} {run['name']}: {run['sink']}, {run['metrics']} metrics, "
        f"steps {run['first_step']} to {run['last_step']} ({run['step']})"
        for role, run in named
    ]


def rows(document: Document) -> list[tuple[str, ...]]:
    """A row for each metric that was compared."""
    return [_row(metric) for metric in document["curves"]["metrics"] if metric["outcome"] != "unknown"]


def _row(metric: Metric) -> tuple[str, ...]:
    steps = metric["steps"]
    at = ("-", "-", "-", "-")
    if metric["outcome"] == "separated":
        at = (
            str(metric["detected_step"]),
            str(metric["onset_step"]),
            number(metric["reference_level"]),
            number(metric["candidate_level"]),
        )
    averaged = f", means of {metric['averaged_steps']}" if metric["averaged_steps"] > 1 else ""
    return (one_line(metric["name"]), *at, f"{steps['count']} ({steps['first']} to {steps['last']}){averaged}")


def details(metric: Metric) -> list[str]:
    """What a metric is, how the outcome came about, what else was seen."""
    lines = []
    if metric["canonical"] is not None:
        lines.append(
            f"{metric['canonical']} ({metric['framework']}): {metric['definition']}; {metric['clipping']}"
            + (f"; trainer logprobs {metric['trainer_logprobs']}" if metric["trainer_logprobs"] else "")
        )
    else:
        lines.append("a name of no framework known here: its definition is not known")
    if metric["candidate_name"] not in (None, metric["name"]):
        lines.append(f"in the candidate: {metric['candidate_name']}")
    lines.append(metric["because"] + (" (on the logarithm)" if metric["logarithm"] else ""))
    return [*lines, *metric["notes"]]


def order(document: Document) -> list[str]:
    """Which separated first, what that suggests, what to do."""
    found = document["curves"]["order"]
    labelled = (("", found["because"]), ("suggests ", found["suggests"]), ("next ", found["next"]))
    return [f"{label}{text}" for label, text in labelled if text]


def problems(document: Document) -> list[str]:
    """What was met in the logs and not used."""
    curves = document["curves"]
    return [
        f"{problem['path']}{', ' + problem['place'] if problem['place'] else ''}: {problem['message']}"
        for run in (*curves["reference"], curves["candidate"])
        for problem in run["problems"]
    ]


def method(document: Document) -> list[str]:
    """What the band is made of and what the test assumes."""
    curves = document["curves"]
    return [
        f"band: {curves['band']}; a false alarm anywhere in this report has probability {curves['alpha']:g}",
        *curves["assumptions"],
    ]


def compared(document: Document) -> Sequence[Metric]:
    """The metrics of the table."""
    return [metric for metric in document["curves"]["metrics"] if metric["outcome"] != "unknown"]
