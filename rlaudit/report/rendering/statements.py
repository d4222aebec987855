"""Every finding of a report in one list, for formats that know nothing but findings.

What was measured is a finding too: a layer that mismatches or could not be judged, a curve that left its band. Such a
finding has no place in a file, but a line of a dump that cannot be used has one.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.report.parts.inspection import Finding, Fix, Location
from rlaudit.report.rendering.changed_histories import changed_turns
from rlaudit.report.rendering.differing_inputs import differing_inputs
from rlaudit.severity import FailFor, Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.comparison import Compared
    from rlaudit.report.parts.curves import Curves
    from rlaudit.report.report import Report

NOWHERE = Location(path=None, line=None, column=None, setting=None)
UNFINISHED = 3
# That nothing was found holds up to limits, which formats of findings show as a note.
_SEVERITIES = {
    Verdict.MISMATCH: Severity.ERROR,
    Verdict.INCONCLUSIVE: Severity.WARNING,
    Verdict.NOTHING_FOUND: Severity.NOTE,
}


def statements(report: "Report") -> list[Finding]:
    """Return all findings, also suppressed ones, and what was measured."""
    findings: list[Finding] = list(report["findings"])
    if report["command"] == "inspect":
        return findings
    inputs = differing_inputs(report)
    if inputs is not None:
        findings.append(_statement("inputs", Severity.ERROR, f"Other tokens go in: {inputs.because}"))
    findings += [_statement("conversations", Severity.WARNING, sentence) for sentence in changed_turns(report)]
    for judgement in report["layers"]:
        findings += _layer(judgement)
    for comparison in report.get("comparisons", ()):
        findings += _faults(comparison, report)
    if "curves" in report:
        findings += _curves(report["curves"])
    return findings


def _statement(
    rule: str, severity: Severity, message: str, layer: Layer | None = None, location: Location = NOWHERE
) -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        message=message,
        layer=layer,
        location=location,
        fix=None,
        suppressed=None,
    )


def _layer(judgement: "Judgement") -> Iterator[Finding]:
    if judgement.verdict in _SEVERITIES:
        # The name of the finding says which layer.
        layer = judgement.layer
        parts = (str(judgement.verdict), judgement.cause or "", judgement.because)
        message = ". ".join(f"{part[0].upper()}{part[1:]}" for part in parts if part)
        yield _statement(f"{layer.replace(' ', '-')}-layer", _SEVERITIES[judgement.verdict], message, layer=layer)


def _faults(comparison: "Compared", report: "Report") -> Iterator[Finding]:
    """Yield what could not be read of a dump: an error if it left the command unfinished, else a warning."""
    faults = comparison.faults
    severity = Severity.ERROR if report["exit_code"] == UNFINISHED else Severity.WARNING
    for fault in faults.shown:
        place = replace(NOWHERE, path=fault.path, line=fault.line)
        message = f"{fault.sequence}: {fault.message}" if fault.sequence else fault.message
        alike = fault.count - 1
        message += f" (and {alike} more like it)" if alike else ""
        yield _statement("unusable-data", severity, message, location=place)
    hidden = faults.count - sum(fault.count for fault in faults.shown)
    if hidden:
        yield _statement("unusable-data", severity, f"{comparison.name}: {hidden} more faults are not shown")


def _curves(curves: "Curves") -> Iterator[Finding]:
    """Yield each metric that left its band or could not be compared, then the order in which they left."""
    for metric in curves.metrics:
        if metric.outcome == "separated":
            began = f" (onset about step {metric.onset_step})" if metric.onset_step is not None else ""
            message = (
                f"{metric.name} left the band of its reference at step {metric.detected_step}{began}: "
                f"{metric.candidate_level:.4g} instead of {metric.reference_level:.4g}"
            )
            yield _statement("curve-separated", Severity.ERROR, message)
        elif metric.outcome == "unknown":
            yield _statement("curve-unknown", Severity.WARNING, f"{metric.name}: {metric.because}")
    order = curves.order
    if order.suggests:
        message = f"{order.precedence}: {order.because}. This suggests: {order.suggests}"
        yield _statement("order-of-separation", Severity.NOTE, message)


def counted(report: "Report") -> list[Finding]:
    """Return the findings that are not suppressed."""
    return [finding for finding in statements(report) if finding.suppressed is None]


def message_of(finding: Finding) -> str:
    """Return what a finding says in a format without headings: there a line says what is so today already."""
    return f"{finding.message} This is so today, too." if finding.so_today else finding.message


def fails(finding: Finding, report: "Report") -> bool:
    """Return whether --fail-for and --fail-on count a finding."""
    inspected = report.get("inspection")
    if inspected is None:
        return finding.severity is Severity.ERROR
    if inspected.fail_on == "never" or (inspected.fail_for is FailFor.MOVE and finding.so_today is not False):
        return False
    return finding.severity.rank >= Severity(inspected.fail_on).rank


def location(place: Location) -> str:
    """Return `path:line:column`."""
    return ":".join(str(part) for part in (place.path, place.line, place.column) if part is not None)


def fix_line(fix: Fix) -> str:
    """Return what a fix does, and the option that makes it."""
    return f"{fix.description} ({'--fix' if fix.safe else '--fix=unsafe'} does it)"
