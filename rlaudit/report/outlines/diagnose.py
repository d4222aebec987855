"""A diagnosis: verdicts, and the reports that they were read from."""

from rlaudit.report.outline import Outline, listed, not_seen, verdicts
from rlaudit.report.report import Report


def outline(report: Report) -> Outline:
    """In reading order."""
    read = [f"{one['path']}: {one['command']}" for one in report["sources"]]
    return Outline(
        f"Diagnosis of {len(read)} reports",
        [verdicts(report), listed("read", "Read", read, mark=""), not_seen(report)],
    )
