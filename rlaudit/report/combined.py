"""Finished reports as one diagnosis: the three layers in order, each with what every report says of it.

How much a report weighs depends on what it did. An ablation changed one thing and measured it; a comparison read
signatures off logs; an inspection read settings and predicts; curves show when and in which order things moved. So
verdicts come from measurements if there are any, from an inspection only if nothing was measured, and curves alone
decide no layer. If an ablation and a comparison disagree, the worse verdict stands and the disagreement is reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.curves.order import Precedence
from rlaudit.diagnosis.inference_path import PROVIDED
from rlaudit.diagnosis.judgement import counted, exit_code_of
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.run_folder import REPORT, has_report, is_run
from rlaudit.layers import WORST_FIRST, Judgement, Layer, Verdict, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.diagnosis import Source
from rlaudit.report.parts.inspection import Versions
from rlaudit.report.read_report import read_report
from rlaudit.rules.audit.trial import SHORTEST, ablation_of
from rlaudit.severity import Threshold

if TYPE_CHECKING:
    from rlaudit.report.report import Report

COMMANDS = ("inspect", "ablate", "compare", "curves")


@dataclass(frozen=True)
class FinishedDocument:
    """A report that was read."""

    path: str
    document: "Report"

    @property
    def command(self) -> str:
        """Return which command wrote it."""
        return str(self.document["command"])


def read_document(path: Path) -> FinishedDocument:
    """Read a report from a file or a run directory.

    Raises UsageError if it is no report of one of COMMANDS, NotFinished if the run has not ended or was damaged.
    """
    file = path / REPORT if path.is_dir() else path
    if not (path.is_file() or (path.is_dir() and has_report(path))):
        if is_run(path):
            raise NotFinished(f"the run in {path} has not finished", "the ablate command that started it goes on there")
        raise UsageError(f"{path}: no such report", "expected a run of rlaudit ablate, or a file of --output json:FILE")
    document = read_report(file)
    if document["command"] not in COMMANDS:
        raise UsageError(f"{file} is of `rlaudit {document['command']}`", f"expected one of: {', '.join(COMMANDS)}")
    if "gates" in document or "learned_gates" in document:
        raise UsageError(f"{file} is of a log and its gates", "expected is a comparison: rlaudit curves REF CANDIDATE")
    return FinishedDocument(str(path), document)


MEASURED = ("ablate", "compare")
# Which layers an order of separation is evidence of. Every order is evidence of the inference path.
SPEAKS_OF: Mapping[str, frozenset[Layer]] = {
    Precedence.LOGPROBS_FIRST: frozenset({Layer.SEMANTIC, Layer.OBJECTIVE}),
    Precedence.TRAINING_ONLY: frozenset({Layer.OBJECTIVE}),
    Precedence.UNKNOWN: frozenset({Layer.OBJECTIVE}),
}


def combined(sources: Sequence[FinishedDocument], threshold: Threshold) -> "Report":
    """Return the report of `rlaudit diagnose`."""
    layers: list[Judgement] = []
    for layer in Layer:
        judged = _layer(layer, sources)
        before = next((judgement for judgement in layers if not judgement.verdict.passes), None)
        if before is not None and judged.verdict != Verdict.NOT_TESTED:
            judged = _held_back(judged, before)
        layers.append(judged)
    unfinished = [report.path for report in sources if report.document["exit_code"] == 3 and not _has_verdict(report)]
    # An ablation changed one thing at a time: it says more of a move than logs do.
    moved = sorted((report for report in sources if "move" in report.document), key=lambda it: it.command != "ablate")
    move = moved[0].document["move"] if moved else None
    diagnosis: Report = {
        **new_report(
            "diagnose",
            exit_code_of(counted(layers, move, threshold.fail_for), bool(unfinished), threshold.fails),
            layers=layers,
            not_seen=_not_seen(sources, unfinished),
        ),
        "versions": _versions(sources),
        "findings": [finding for report in sources for finding in report.document["findings"]],
        "effects": [effect for report in sources for effect in report.document["effects"]],
        "sources": [
            Source(path=report.path, command=report.command, exit_code=report.document["exit_code"])
            for report in sources
        ],
    }
    if move is not None:
        diagnosis["move"] = move
    return diagnosis


def _layer(layer: Layer, sources: Sequence[FinishedDocument]) -> Judgement:
    entries = [(report, judged) for report in sources for judged in report.document["layers"] if judged.layer == layer]
    decided = [(report, judged) for report, judged in entries if judged.verdict != Verdict.NOT_TESTED]
    measured = [(report, judged) for report, judged in decided if report.command in MEASURED]
    deciding = measured or decided or entries
    if not deciding:
        return untested(layer, "none of these reports is about it", "compare logged tokens, or ablate the config")
    # An intervention weighs more than a signature of the same verdict.
    source, worst = min(deciding, key=lambda entry: (WORST_FIRST.index(entry[1].verdict), entry[0].command != "ablate"))
    evidence = [f"[{source.command} {source.path}] {line}" for line in worst.evidence]
    for other, judged in entries:
        if other is source:
            continue
        if other.command != "inspect" or judged.verdict != Verdict.NOT_TESTED:  # it can show a mismatch and no match
            evidence.append(f"[{other.command} {other.path}] {_in_words(judged)}")
        if other.command == "inspect":
            evidence += [f"[{other.command} {other.path}] {line}" for line in judged.evidence]
    evidence += _curves(layer, sources)
    settings = _mismatch_by_settings(worst, source, entries)
    named, by_settings = worst, ""
    if settings is not None:
        named = settings[1]
        by_settings = f"; the settings in {settings[0].path} show {named.cause}, but the tokens alone show no cause"
    return replace(
        worst,
        cause=named.cause,
        causes=named.causes,
        because=f"{worst.because}{by_settings}{_agreement(worst, source, measured)}",
        evidence=evidence,
        next=_next(worst, source, sources),
    )


def _mismatch_by_settings(
    worst: Judgement, source: FinishedDocument, entries: Sequence[tuple[FinishedDocument, Judgement]]
) -> tuple[FinishedDocument, Judgement] | None:
    """Return the inspection that names a cause, if tokens show a mismatch and no cause."""
    if source.command not in MEASURED or worst.verdict != Verdict.MISMATCH or worst.causes:
        return None
    return next(
        (
            (report, judged)
            for report, judged in entries
            if report.command == "inspect" and judged.verdict == Verdict.MISMATCH and judged.cause
        ),
        None,
    )


def _in_words(judged: Judgement) -> str:
    cause = f" ({judged.cause})" if judged.cause else ""
    return f"{judged.verdict}{cause}: {judged.because}"


def _agreement(
    worst: Judgement, source: FinishedDocument, measured: Sequence[tuple[FinishedDocument, Judgement]]
) -> str:
    others = [(report, judged) for report, judged in measured if report is not source]
    agree = [report.path for report, judged in others if judged.verdict == worst.verdict]
    against = [f"{report.path} ({judged.verdict})" for report, judged in others if judged.verdict != worst.verdict]
    agreement = f"; {', '.join(agree)} agrees" if agree else ""
    if against:
        agreement += f"; {', '.join(against)} does not agree: check that it has the same engine and settings"
    return agreement


def _next(worst: Judgement, source: FinishedDocument, sources: Sequence[FinishedDocument]) -> str:
    """Return the next experiment: an intervention if only a signature names a cause."""
    if worst.verdict != Verdict.MISMATCH or any(report.command == "ablate" for report in sources):
        return worst.next
    causes = all_causes()
    named = [causes[name] for name in worst.causes if name in causes]
    factor = next((cause.factor for cause in named if cause.factor is not None), None)
    if factor is None or source.command != "compare":
        return worst.next
    inspected = next((report.document for report in sources if len(report.document.get("configs", ())) == 1), None)
    if inspected is None:
        command = ablation_of(SHORTEST, None, None, [factor])
    else:
        (config,) = inspected["configs"]
        before, after = config.versions["from"], config.versions["to"]
        command = ablation_of(config.path, None if before == after else before, after, [factor])
    return f"{worst.next}. Or test this cause: {command}"


def _held_back(judged: Judgement, before: Judgement) -> Judgement:
    """Withhold a layer's verdict: it is judged only if the one before it is clean."""
    if before.verdict == Verdict.INCONCLUSIVE and judged.layer != Layer.OBJECTIVE:
        if judged.because.startswith(PROVIDED):
            return judged
        return replace(judged, because=f"if the {before.layer} layer matches, {judged.because}")
    return replace(
        judged,
        verdict=Verdict.NOT_TESTED,
        cause=None,
        causes=(),
        because=f"fix the {before.layer} layer first. Seen so far: {_in_words(judged)}",
        falsifier="",
        next=before.next,
    )


def _curves(layer: Layer, sources: Sequence[FinishedDocument]) -> list[str]:
    """Return what the order of separation suggests, if it is about the layer."""
    orders = [(report.path, report.document["curves"].order) for report in sources if report.command == "curves"]
    return [
        f"[curves {path}] {order.precedence}: {order.because}. This suggests: {order.suggests}"
        for path, order in orders
        if layer is Layer.INFERENCE_PATH or layer in SPEAKS_OF.get(order.precedence, ())
    ]


def _has_verdict(report: FinishedDocument) -> bool:
    return any(judged.verdict != Verdict.NOT_TESTED for judged in report.document["layers"])


def _versions(sources: Sequence[FinishedDocument]) -> Versions:
    migrations = _migrations(sources)
    before, after = migrations.pop() if len(migrations) == 1 else (None, None)
    return {"from": before, "to": after}


def _migrations(sources: Sequence[FinishedDocument]) -> set[tuple[str | None, str | None]]:
    """Return the pairs of releases that the reports are about."""
    versions = [report.document["versions"] for report in sources]
    return {(pair["from"], pair["to"]) for pair in versions if pair["to"] is not None}


def _not_seen(sources: Sequence[FinishedDocument], unfinished: Sequence[str]) -> list[str]:
    lines = [f"{path}: this audit did not finish, so nothing of it was judged" for path in unfinished]
    commands = {report.command for report in sources}
    if not commands & set(MEASURED):
        lines.append("nothing was measured: settings only predict a mismatch, and do not show the inference path")
    elif "ablate" not in commands:
        lines.append(
            "none of these reports is an ablation, so causes are named by their signature and not by an experiment"
        )
    migrations = _migrations(sources)
    if len(migrations) > 1:
        releases = ", ".join(sorted(f"{before} to {after}" for before, after in migrations))
        lines.append(f"these reports are of different vLLM releases ({releases})")
    for report in sources:
        # A line of a comparison may begin with the table that it is about.
        lines += [
            f"[{report.command} {report.path}] {line.removeprefix(f'{report.path}: ')}"
            for line in report.document["not_seen"]
        ]
    return list(dict.fromkeys(lines))
