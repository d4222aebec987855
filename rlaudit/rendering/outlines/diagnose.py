"""A diagnosis: verdicts, what differs between two recorded trainings, and the reports that it was read from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.layers import Layer
from rlaudit.rendering.outline import Block, Lines, Outline, Section, Table, listed, not_seen, verdicts
from rlaudit.rendering.outlines.compare import versions_of
from rlaudit.report.figures import interval
from rlaudit.report.parts.comparison import Compared
from rlaudit.report.parts.diagnosis import Difference, Kind, Trainings
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
# What a recording's own tokens come to, beside its verdicts.
_METRICS = ("mean_ratio_minus_one", "k3")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    read = [f"{one.path}: {one.command}" for one in report["sources"]]
    trainings = report.get("trainings")
    return Outline(
        _title(report, len(read)),
        [
            verdicts(report),
            *([] if trainings is None else _trainings(report, trainings)),
            listed("read", "Read", read, mark=""),
            not_seen(report),
        ],
    )


def _title(report: "Report", reports: int) -> str:
    trainings = report.get("trainings")
    if trainings is None:
        return f"Diagnosis of {reports} reports"
    named = [f"{one.path} (vLLM {one.vllm or 'unknown'})" for one in trainings.recordings]
    return f"Migration {' -> '.join(named)}" if len(named) == 2 else f"Training {named[0]}"


def _trainings(report: "Report", trainings: Trainings) -> list[Section]:
    recordings, compared = trainings.recordings, report.get("comparisons", ())
    seen: list[Block] = [Lines(one.seen, one.path) for one in recordings if one.seen]
    return [
        Section("alone", "Each recording by itself", [_alone(report, trainings)]),
        Section(
            "versions", "Weights by version", [block for one in compared for block in _versions(one)], gathers=True
        ),
        Section("differences", "What differs", _differences(trainings), gathers=True)
        if len(recordings) == 2
        else Section("differences", "What differs", []),
        Section("recorded", "Recorded", seen, gathers=True),
    ]


def _versions(compared: Compared) -> list[Block]:
    return [replace(block, title=compared.name) for block in versions_of(compared)]


def _alone(report: "Report", trainings: Trainings) -> Table:
    """Return what the tokens of each recording say when nothing is held against them."""
    compared = {one.is_before: one for one in report.get("comparisons", ())}
    rows = []
    for one in trainings.recordings:
        own = compared.get(one.role == "old")
        measured = {} if own is None else own.measurements
        rows.append(
            [
                one.path,
                *(str(one.layers.get(layer, "NOT TESTED")) for layer in Layer),
                *(interval(measured.get(name)) for name in _METRICS),
            ]
        )
    return Table(["recording", *map(str, Layer), "mean ratio - 1", "k3 (nats)"], rows)


def _differences(trainings: Trainings) -> list[Block]:
    old, new = (one.path for one in trainings.recordings)
    blocks: list[Block] = []
    for kind, title in TITLES.items():
        own = [one for one in trainings.differences if one.kind == kind]
        if own:
            rows = [[one.name, _value(one, "old"), _value(one, "new"), str(one.layer or "-")] for one in own]
            blocks.append(Table(["", old, new, "matters for"], rows, title, values=True))
        elif kind in trainings.same:
            blocks.append(Lines(["the same in both"], title, mark=""))
        else:
            blocks.append(Lines(["not in both recordings"], title, mark=""))
    return blocks


def _value(one: Difference, side: str) -> str:
    """Return what ran, and what was written for it if that is something else."""
    ran, written = (one.old, one.old_written) if side == "old" else (one.new, one.new_written)
    if one.old == one.new:
        return f"{shown(ran)} ({'left to vLLM' if written is None else f'written {shown(written)}'})"
    if written is None or written == ran:
        return "-" if ran is None else shown(ran)
    return f"{shown(ran)} (written {shown(written)})"
