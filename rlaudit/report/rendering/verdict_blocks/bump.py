"""A bump of vLLM: what it brings to the configs, setting by setting, and the known defects that it crosses."""

from typing import TYPE_CHECKING

from rlaudit.report.rendering.actions import action_lines
from rlaudit.report.rendering.inspected_answer import READ, about_the_move
from rlaudit.report.rendering.outlines.bump import brought, title
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock
from rlaudit.report.shown_value import shown
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

ENTERED = "entered"


def block(report: "Report") -> VerdictBlock:
    """Return what the move brings, the gravest first; notes are left to what is folded."""
    bump = report["bump"]
    findings = [finding for finding in brought(report) if finding.severity != Severity.NOTE]
    answer = [*bump.said]
    if "inspection" in report:
        answer = [about_the_move(brought(report), report["inspection"].gone or ()), *action_lines(findings)]
    defects = sorted(
        (defect for defect in bump.advisories if defect.move == ENTERED and (defect.certain or defect.open)),
        key=lambda defect: -defect.certain,
    )
    return VerdictBlock(
        title=title(report),
        answer=[*answer, f"{READ[:1].upper()}{READ[1:]}."],
        rows=list(dict.fromkeys(_row(finding, report) for finding in findings)),
        findings=list(dict.fromkeys(f"{finding.rule}: {finding.message}" for finding in findings)),
        defects=[f"{defect.name}: {defect.says} {defect.way_out}" for defect in defects],
    )


def _row(finding: "Finding", report: "Report") -> Row:
    setting = next(
        (row for row in report["settings"] if row.name == finding.setting and row.location == finding.location), None
    ) or next((row for row in report["settings"] if row.name == finding.setting), None)
    return Row(
        metric=finding.setting or finding.location.setting or finding.rule,
        today="-" if setting is None else shown(setting.effective_from),
        new="-" if setting is None else shown(setting.effective_to),
        limit=f"today's value: {finding.rule}",
        verdict=str(finding.severity),
        layer="-" if finding.layer is None else str(finding.layer),
    )


BLOCK = block
