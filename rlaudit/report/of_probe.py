"""The report of a probe; its part is under the key `probe`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.judgement import counted, exit_code_of
from rlaudit.layers import Verdict
from rlaudit.probe.course import Probed
from rlaudit.probe.judge import NAME_ONE, answer_of, layers_of
from rlaudit.probe.move import move_between
from rlaudit.report.new_report import new_report
from rlaudit.report.of_comparison import document_of as compared_of
from rlaudit.report.parts.probe import Probe
from rlaudit.severity import FailFor, Threshold

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings
    from rlaudit.diagnosis.compare_tables import Comparer
    from rlaudit.diagnosis.move import Move
    from rlaudit.layers import Judgement
    from rlaudit.probe.samples import Samples
    from rlaudit.report.report import Report


def document_of(
    servers: Sequence[Probed],
    meanings: "Meanings | None",
    threshold: Threshold,
    requires_match: bool = False,
    sampled: "Mapping[str, Samples] | None" = None,
    scored: "Comparer | str | None" = None,
) -> "Report":
    """Return the report of one server, or of today's and the new one.

    sampled: live samples by the server's address, if they were wanted. scored: their comparison with a model's scores,
    or why there is none.
    """
    judged = [layers_of(probed, meanings) for probed in servers]
    *before, last = servers
    layers = judged[-1]
    move = move_between(before[0], last, (judged[0], layers), meanings) if before else None
    compared: Report | None = None
    if scored is not None and not isinstance(scored, str):
        compared = compared_of(scored, threshold, False, requires_match)
        layers = _with_scores(layers, compared["layers"])
        # A meaning that gets worse comes first, and the server's own answers show it without any noise.
        if move is not None and not move.changes[0].change.is_worse:
            move = compared["move"].between(before[0].who.release, last.who.release)
    wanting = {address: samples.lacks for address, samples in (sampled or {}).items() if samples.lacks}
    unfinished = any(probed.stopped for probed in servers) or any(not each.rows for each in (sampled or {}).values())
    counts = _counts(layers, move, meanings, threshold, scored is not None)
    report: Report = {
        **new_report(
            "probe",
            exit_code_of(counts, unfinished or isinstance(scored, str), threshold.fails, requires_match),
            before=before[0].who.release if before else None,
            after=last.who.release,
            layers=layers,
            not_seen=[
                *_not_seen(servers, meanings),
                *(f"live samples of {address}: {lacks}" for address, lacks in wanting.items()),
                *([f"nothing was scored: {scored}"] if isinstance(scored, str) and not wanting else []),
                *(compared["not_seen"] if compared is not None else []),
            ],
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
    if compared is not None:
        report["comparisons"], report["token_figures"] = compared["comparisons"], compared["token_figures"]
    report["not_seen"] = list(dict.fromkeys(report["not_seen"]))
    return report


def _with_scores(probed: "Sequence[Judgement]", compared: "Sequence[Judgement]") -> "list[Judgement]":
    """Return the layers of both: a meaning that the server's own answers show to be wrong stands."""
    if probed[0].verdict is not Verdict.MISMATCH:
        return list(compared)
    return [probed[0], *(compared if compared[0].verdict is Verdict.MISMATCH else probed)[1:]]


def _counts(
    layers: "Sequence[Judgement]",
    move: "Move | None",
    meanings: "Meanings | None",
    threshold: Threshold,
    scored: bool,
) -> Sequence[Verdict]:
    """Return the verdicts that the exit code is made of: what the move does, or what the trainer assumes.

    A probe without scores does not judge the later layers. Without a trainer and a move it states facts, no fault.
    """
    judged = 3 if scored else 1
    if move is not None and (meanings is None or threshold.fail_for is FailFor.MOVE):
        return counted(layers, move, FailFor.MOVE)[:judged]
    return [] if meanings is None else counted(layers[:judged], None, FailFor.STATE)


def _not_seen(servers: Sequence[Probed], meanings: "Meanings | None") -> list[str]:
    lines = list(meanings.assumed) if meanings is not None else []
    for probed in servers:
        prefix = f"{probed.who.address}: " if len(servers) > 1 else ""
        if probed.stopped:
            lines.append(f"{prefix}the probe ended early: {probed.stopped}")
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
