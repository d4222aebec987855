"""One thing that a weight-update audit found: what, how sure that is, and what to do next."""

from dataclasses import dataclass

from rlaudit.inspection.finding import Severity
from rlaudit.laboratory.studies.updates.judge import JudgedCase

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True)
class UpdateFinding:
    """`name` is stable; `version` and `path` are of vLLM; `case` is where it was seen (JudgedCase.where). `sure`: the
    figures.
    """

    name: str
    severity: Severity
    version: str
    path: str
    case: str
    message: str
    sure: str = ""
    next: str = ""


def finding_of(
    judged: JudgedCase, name: str, severity: Severity, message: str, sure: str = "", following: str = ""
) -> UpdateFinding:
    """What one case shows. following: the next step."""
    start = judged.record.start
    return UpdateFinding(name, severity, start.version, start.path, judged.where, message, sure, following)


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """A figure with its interval in words."""
    if value is None or low is None or high is None:
        return "unknown"
    return f"{value:.2g} [{low:.2g}, {high:.2g}]"
