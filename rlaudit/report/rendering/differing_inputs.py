"""Whether a report says that other tokens go in, which stands before its layers."""

from typing import TYPE_CHECKING

from rlaudit.layers import Verdict

if TYPE_CHECKING:
    from rlaudit.diagnosis.inputs import Inputs
    from rlaudit.report.report import Report


def differing_inputs(report: "Report") -> "Inputs | None":
    """Return what was found of the inputs if they differ; None if they do not, or if nothing was rendered."""
    inputs = report.get("inputs")
    return inputs if inputs is not None and inputs.verdict is Verdict.MISMATCH else None
