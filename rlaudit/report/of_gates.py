"""The report of a log and its gates; its part is under the key `gates`."""

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rlaudit.curves.gated_log import GatedLog
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.gates import HeldLog
from rlaudit.rules.advisories import in_some_releases

if TYPE_CHECKING:
    from rlaudit.curves.gate import Gate
    from rlaudit.report.report import Report

METHOD = (
    "a gate raises an alarm if, from some step on, more than half of the steps are surely beyond the gate. One wild "
    "step is not enough",
    "you may check the run after every step. A run that is beyond a gate for some twenty steps raises the alarm, even "
    "if it comes back",
    "a step that is logged again after a resume counts once, with its first value",
)
# Reports of an rlaudit before 0.4, which could follow a log, have other reasons.
# Of a log that has no key of a gate's name.
MOST_KEYS = 12
ENDED = "the log was read once"


def document_of(log: GatedLog, fail: bool) -> "Report":
    """Return the report of `rlaudit curves LOG --gate`. fail: whether a raised gate makes the exit code 1."""
    raised = any(gate.alarm_step is not None for gate in log.held)
    code = 3 if log.unknown and not raised else int(fail and raised)
    return {
        **new_report("curves", code, not_seen=_not_seen(log)),
        "gates": HeldLog(
            name=log.name,
            what=log.what,
            alpha=log.alpha,
            ended=ENDED,
            gates=log.held,
            method=[
                "if a step is as likely within its gate as beyond, the probability of any alarm in the whole run is "
                f"{log.alpha:g} at most",
                *METHOD,
            ],
        ),
    }


def _listed(log: GatedLog, gate: "Gate") -> str:
    """Return the keys of a log, the likest first, with rlaudit's names."""
    wanted = gate.metric.lower()
    likest = sorted(log.keys, key=lambda key: (-SequenceMatcher(None, wanted, key.lower()).ratio(), key))
    shown = [f"{key} ({log.keys[key]})" if log.keys[key] not in {"", key} else key for key in likest[:MOST_KEYS]]
    return ", ".join(shown) + (", ..." if len(likest) > MOST_KEYS else "")


def _not_seen(log: GatedLog) -> list[str]:
    lines = [*([log.waiting] if log.waiting else []), *in_some_releases(log.keys)]
    if log.unknown and log.keys:
        lines += [f"{gate}: nothing is logged under that name; there are {_listed(log, gate)}" for gate in log.unknown]
    elif log.unknown:
        lines += [f"{gate}: nothing was logged" for gate in log.unknown]
    return lines
