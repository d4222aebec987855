"""Every finding of a report in one list, for formats that know nothing but findings.

What was measured is a finding too: a layer that mismatches or could not be judged, a curve that left its band. It has
no place in a file; a line of a dump that cannot be used has one.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.report.parts.inspection import Finding, Fix, Location
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.comparison import Compared
    from rlaudit.report.parts.curves import Curves
    from rlaudit.report.report import Report

NOWHERE = Location(path=None, line=None, column=None, setting=None)
UNFINISHED = 3
_SEVERITIES = {Verdict.MISMATCH: Severity.ERROR, Verdict.INCONCLUSIVE: Severity.WARNING}


def statements(document: "Report") -> list[Finding]:
    """Return all findings, also suppressed ones, and what was measured, if anything was."""
    found: list[Finding] = list(document["findings"])
    if document["command"] == "inspect":
        return found
    found += [one for layer in document["layers"] for one in _layer(layer)]
    found += [one for comparison in document.get("comparisons", ()) for one in _faults(comparison, document)]
    if "curves" in document:
        found += _curves(document["curves"])
    return found


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


def _layer(layer: "Judgement") -> Iterator[Finding]:
    if layer.verdict in _SEVERITIES:
        name, cause = layer.layer, f" ({layer.cause})" if layer.cause else ""
        message = f"{name} layer: {layer.verdict}{cause}: {layer.because}"
        yield _statement(f"{name.replace(' ', '-')}-layer", _SEVERITIES[layer.verdict], message, layer=name)


def _faults(comparison: "Compared", document: "Report") -> Iterator[Finding]:
    """Yield what could not be read of a dump: it left the command unfinished, or was allowed."""
    faults = comparison.faults
    severity = Severity.ERROR if document["exit_code"] == UNFINISHED else Severity.WARNING
    for one in faults.shown:
        where = replace(NOWHERE, path=one.path, line=one.line)
        message = f"{one.sequence}: {one.message}" if one.sequence else one.message
        more = one.count - 1
        message += f" (and {more} more like it)" if more else ""
        yield _statement("unusable-data", severity, message, location=where)
    rest = faults.count - sum(one.count for one in faults.shown)
    if rest:
        yield _statement("unusable-data", severity, f"{comparison.name}: {rest} more faults are not shown")


def _curves(curves: "Curves") -> Iterator[Finding]:
    """Yield each metric that left its band, and in which order; a metric that could not be compared is no match."""
    for metric in curves.metrics:
        if metric.outcome == "separated":
            began = f", having begun about step {metric.onset_step}" if metric.onset_step is not None else ""
            message = (
                f"{metric.name} left the band of its reference at step {metric.detected_step}{began}: "
                f"{metric.candidate_level:.4g} instead of {metric.reference_level:.4g}"
            )
            yield _statement("curve-separated", Severity.ERROR, message)
        elif metric.outcome == "unknown":
            yield _statement("curve-unknown", Severity.WARNING, f"{metric.name}: {metric.because}")
    order = curves.order
    if order.suggests:
        message = f"{order.precedence} ({order.because}): {order.suggests}"
        yield _statement("order-of-separation", Severity.NOTE, message)


def counted(document: "Report") -> list[Finding]:
    """Return the findings that are not suppressed."""
    return [one for one in statements(document) if one.suppressed is None]


def location(found: Location) -> str:
    """path:line:column."""
    return ":".join(str(one) for one in (found.path, found.line, found.column) if one is not None)


def fix_line(fix: Fix) -> str:
    """Return what a fix does, and the option that makes it."""
    return f"{fix.description} ({'--fix' if fix.safe else '--fix=unsafe'} does it)"
