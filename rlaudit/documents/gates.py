"""A log and its gates as the document `rlaudit-report/1`; the key of its own part is `gates`."""

import math
from typing import TYPE_CHECKING

from rlaudit.curves.follow import FollowedLog
from rlaudit.curves.gate import Watched
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.gates import HeldGate, HeldLog

if TYPE_CHECKING:
    from rlaudit.report.report import Report

METHOD = (
    "a gate is raised where more than half of the steps from some step on are beyond it, surely enough: one wild step "
    "is one step",
    "it does not matter how often the run is looked at; but a run that wanders beyond its gate for some twenty steps "
    "has left it, even if it comes back",
    "a step that is logged again after a resume counts once, as it was first",
)


def document_of(log: FollowedLog, ended: str, fail: bool) -> "Report":
    """Return the report of `rlaudit curves LOG --gate`. fail: whether a raised gate makes the exit code 1."""
    gates = list(log.watched.values())
    raised = any(one.alarm is not None for one in gates)
    code = 3 if log.unknown and not raised else int(fail and raised)
    return {
        **new_report("curves", code, not_seen=_not_seen(log)),
        "gates": HeldLog(
            name=log.name,
            what=log.what,
            alpha=log.alpha,
            ended=ended,
            gates=[_gate(log, one) for one in gates],
            method=[
                "while a step is as likely within its gate as beyond, any alarm ever has a probability of "
                f"{log.alpha:g} at most",
                *METHOD,
            ],
        ),
    }


def _gate(log: FollowedLog, one: Watched) -> HeldGate:
    steps = list(one.values)
    last = one.values[steps[-1]] if steps else None
    return HeldGate(
        gate=str(one.gate),
        metric=one.key,
        canonical=log.keys[one.key],
        limit=one.gate.limit,
        steps=len(steps),
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        steps_beyond=one.steps_beyond,
        last_value=None if last is None or math.isnan(last) else last,
        evidence=one.evidence,
        alarm_evidence=1.0 / one.level,
        alarm_step=one.alarm,
        since_step=one.since,
        because=one.said(),
    )


def _not_seen(log: FollowedLog) -> list[str]:
    said = [log.waiting] if log.waiting else []
    if log.unknown and log.keys:
        known = sorted({name or key for key, name in log.keys.items()})
        shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        said += [f"{gate}: nothing is logged under that name; there are {shown}" for gate in log.unknown]
    elif log.unknown:
        said += [f"{gate}: nothing was logged" for gate in log.unknown]
    return said
