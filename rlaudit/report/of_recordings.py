"""The report of recordings: what their tokens say, what their engines ran with, and what a migration changed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.diagnosis.recorded_differences import Difference
from rlaudit.diagnosis.recorded_training import RecordedTraining, diagnose_recordings
from rlaudit.inspection.inspect import exit_code
from rlaudit.layers import Layer
from rlaudit.report.combined import FinishedDocument, combined
from rlaudit.report.of_comparison import document_of as comparison_document
from rlaudit.report.of_inspection import document_of as inspection_document
from rlaudit.report.of_inspection import not_decided_in
from rlaudit.report.shown_value import shown
from rlaudit.severity import Threshold

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def diagnosed(recordings: Sequence[Path], others: Sequence[FinishedDocument], threshold: Threshold) -> "Report":
    """Return the diagnosis of one recording, or of an old and a new one, beside other finished reports.

    Raises UsageError for more than two recordings, NotFinished for one that cannot be read.
    """
    diagnosed = diagnose_recordings(recordings)
    trainings = diagnosed.trainings.recordings
    old, new = trainings[0], trainings[-1]
    sources: list[Report] = []
    if diagnosed.tokens is not None:
        sources.append(comparison_document(diagnosed.tokens, Threshold(), allow_partial=False))
    if diagnosed.inspection is not None:
        code = exit_code(diagnosed.inspection, Threshold(), none_is_fine=True)
        sources.append(inspection_document(diagnosed.inspection, code, Threshold()))
    for source in sources:
        source["not_seen"] = _without(source["not_seen"], trainings)
    document = combined([*(FinishedDocument(new.path, source) for source in sources), *others], threshold)
    missing = [f"{training.path}: {sentence}" for training in trainings for sentence in training.missing]
    document["not_seen"] = [*dict.fromkeys([*diagnosed.unjudged, *missing]), *document["not_seen"]]
    document["layers"] = [
        replace(layer, evidence=[*layer.evidence, *_evidence(diagnosed.trainings.differences, layer.layer)])
        for layer in document["layers"]
    ]
    if diagnosed.tokens is not None:
        document["comparisons"] = sources[0]["comparisons"]
        document["token_figures"] = sources[0]["token_figures"]
    document["trainings"] = diagnosed.trainings
    document["versions"] = {"from": old.vllm, "to": new.vllm}
    if "move" in document:
        document["move"] = document["move"].between(old.vllm, new.vllm)
    return document


def _without(lines: Sequence[str], trainings: Sequence[RecordedTraining]) -> list[str]:
    """Return what a report has not seen, without what the recordings lack: the diagnosis lists that for each."""
    missing = [(training.path, sentence) for training in trainings for sentence in training.missing]
    listed = {sentence for _, sentence in missing}
    listed |= {not_decided_in(path, sentence) for path, sentence in missing}
    # `compare` names the table that runs today first.
    listed |= {f"{path}{today}: {sentence}" for path, sentence in missing for today in ("", " (today)")}
    return [line for line in lines if line not in listed]


def _evidence(differing: Sequence[Difference], layer: Layer) -> list[str]:
    return [
        f"{row.name} differs ({shown(row.old)} -> {shown(row.new)}): {row.why}"
        for row in differing
        if row.layer == layer and row.why and row.old != row.new
    ]
