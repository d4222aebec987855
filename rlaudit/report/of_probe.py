"""The report of a probe; its part is under the key `probe`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.judgement import counted, exit_code_of
from rlaudit.diagnosis.move import Change
from rlaudit.layers import Verdict
from rlaudit.probe.course import Probed
from rlaudit.probe.judge import NAME_ONE, answer_of, layers_of
from rlaudit.probe.move import move_between
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.probe import Probe
from rlaudit.severity import FailFor, Threshold

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings
    from rlaudit.diagnosis.move import Move
    from rlaudit.layers import Judgement
    from rlaudit.report.report import Report


def document_of(
    servers: Sequence[Probed], meanings: "Meanings | None", threshold: Threshold, requires_match: bool = False
) -> "Report":
    """Return the report of one server, or of today's and the new one."""
    judged = [layers_of(probed, meanings) for probed in servers]
    *before, last = servers
    move = move_between(before[0], last, (judged[0], judged[-1]), meanings) if before else None
    report: Report = {
        **new_report(
            "probe",
            _exit_code(servers, judged[-1], move, meanings, threshold, requires_match),
            before=before[0].who.release if before else None,
            after=last.who.release,
            layers=judged[-1],
            not_seen=_not_seen(servers, meanings),
        ),
        "probe": Probe(
            servers=servers,
            answer=answer_of(last) + ([] if meanings is not None else [f"For a verdict, {NAME_ONE}."]),
            sampling=None if meanings is None else meanings.sampling,
            trainer=None if meanings is None else meanings.trainer,
        ),
    }
    if move is not None:
        report["move"] = move
    return report


def _exit_code(
    servers: Sequence[Probed],
    layers: "Sequence[Judgement]",
    move: "Move | None",
    meanings: "Meanings | None",
    threshold: Threshold,
    requires_match: bool,
) -> int:
    """Return the exit code: of what the move does to the meaning of logprobs, or of what the trainer assumes.

    A probe does not judge the later layers. Without a trainer and without a move it states facts, which are no fault.
    """
    if any(probed.stopped for probed in servers):
        return 3
    if move is not None and (meanings is None or threshold.fail_for is FailFor.MOVE):
        change = move.changes[0].change
        verdict = Verdict.INCONCLUSIVE if change is Change.UNKNOWN else Verdict.MATCH
        return exit_code_of([Verdict.MISMATCH if change.is_worse else verdict], False, threshold.fails, requires_match)
    if meanings is None:
        return 0
    return exit_code_of(counted(layers[:1], None, FailFor.STATE), False, threshold.fails, requires_match)


def _not_seen(servers: Sequence[Probed], meanings: "Meanings | None") -> list[str]:
    lines = list(meanings.assumed) if meanings is not None else []
    for probed in servers:
        prefix = f"{probed.who.address}: " if len(servers) > 1 else ""
        if probed.stopped:
            lines.append(f"{prefix}ended early: {probed.stopped}")
        lines += [
            f"{prefix}{parameter.name}: {parameter.because}"
            for parameter in probed.parameters
            if parameter.in_report is None
        ]
        lines += [
            f"{prefix}{answered.question} {answered.checked.answer}"
            for answered in probed.checks
            if answered.checked.found is None
        ]
    return lines
