"""The report of a diagnosis: verdicts, what differs between two recorded trainings, and the reports that it read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.recorded_differences import Difference, Kind
from rlaudit.diagnosis.recorded_training import Trainings
from rlaudit.layers import Layer
from rlaudit.report.figures import interval
from rlaudit.report.rendering.changed_histories import changed_histories
from rlaudit.report.rendering.moved import moved
from rlaudit.report.rendering.outline import Block, Lines, Outline, Section, Table, listed, not_seen, verdicts
from rlaudit.report.shown_value import shown

if TYPE_CHECKING:
    from rlaudit.report.report import Report

TITLES: Mapping[Kind, str] = {
    "release": "Releases",
    "configuration": "Configuration of the engine, as it ran",
    "environment": "Environment variables",
    "sampling": "Sampling parameters that most requests used",
    "update": "Updates of the weights",
}
# Shown for the tokens of each recording, beside its verdicts.
_METRICS = ("mean_ratio_minus_one", "k3")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    sources = [f"{source.path}: {source.command}" for source in report["sources"]]
    trainings = report.get("trainings")
    return Outline(
        _title(report, len(sources)),
        [
            changed_histories(report),
            moved(report),
            verdicts(report),
            *([] if trainings is None else _trainings(report, trainings)),
            listed("read", "Read", sources, mark=""),
            not_seen(report),
        ],
    )


def _title(report: "Report", reports: int) -> str:
    trainings = report.get("trainings")
    if trainings is None:
        return f"Diagnosis of {reports} reports"
    names = [f"{recording.path} (vLLM {recording.vllm or 'unknown'})" for recording in trainings.recordings]
    return f"Migration {' -> '.join(names)}" if len(names) == 2 else f"Training {names[0]}"


def _trainings(report: "Report", trainings: Trainings) -> list[Section]:
    recordings = trainings.recordings
    seen: list[Block] = [Lines(recording.seen, recording.path) for recording in recordings if recording.seen]
    return [
        Section("alone", "Each recording by itself", [_alone(report, trainings)]),
        Section("differences", "What differs", _differences(trainings) if len(recordings) == 2 else [], gathers=True),
        Section("recorded", "Recorded", seen, gathers=True),
    ]


def _alone(report: "Report", trainings: Trainings) -> Table:
    """Return what the tokens of each recording say by themselves."""
    compared = {table.is_before: table for table in report.get("comparisons", ())}
    rows = []
    for recording in trainings.recordings:
        table = compared.get(recording.role == "old")
        measured = {} if table is None else table.measurements
        verdicts_of_layers = [str(recording.layers.get(layer, "NOT TESTED")) for layer in Layer]
        rows.append([recording.path, *verdicts_of_layers, *(interval(measured.get(name)) for name in _METRICS)])
    return Table(["recording", *map(str, Layer), "mean ratio - 1", "k3 (nats)"], rows)


def _differences(trainings: Trainings) -> list[Block]:
    old, new = (recording.path for recording in trainings.recordings)
    blocks: list[Block] = []
    for kind, title in TITLES.items():
        rows = [_row(difference) for difference in trainings.differences if difference.kind == kind]
        if rows:
            blocks.append(Table(["", old, new, "matters for"], rows, title, values=True))
        else:
            line = "the same in both" if kind in trainings.same else "not in both recordings"
            blocks.append(Lines([line], title, mark=""))
    return blocks


def _row(difference: Difference) -> list[str]:
    old = _value(difference, difference.old, difference.old_written)
    new = _value(difference, difference.new, difference.new_written)
    return [difference.name, old, new, str(difference.layer or "-")]


def _value(difference: Difference, ran: Any, written: Any) -> str:
    """Return what ran, and what was written for it if that is something else."""
    if difference.old == difference.new:
        return f"{shown(ran)} ({'left to vLLM' if written is None else f'config: {shown(written)}'})"
    if written is None or written == ran:
        return "-" if ran is None else shown(ran)
    return f"{shown(ran)} (config: {shown(written)})"
