"""What moves between two vLLM releases without a config: as a report, and as lines of text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.audit.audit import as_json
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.inspection import Group, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import Change, Moved, Part, moved, moved_values
from rlaudit.vllm.resolution.engine import has_v0

if TYPE_CHECKING:
    from rlaudit.report.report import Report

GROUPS: Mapping[Part, Group] = {
    Part.RESOLVED: "engine",
    Part.ARGUMENT: "engine",
    Part.FLAG: "engine",
    Part.VARIABLE: "environment",
    Part.SAMPLING: "sampling",
    Part.METHOD: "method",
    Part.IMPORT: "import",
}
_HEADS = {
    Part.RESOLVED: "What an engine runs with when the config says nothing",
    Part.ARGUMENT: "Declared defaults",
    Part.VARIABLE: "Defaults of environment variables",
    Part.SAMPLING: "Defaults of sampling parameters",
    Part.METHOD: "Methods with other parameters",
}
_WIDEST = 60


def document_of(before: Version, after: Version, machine: Machine) -> "Report":
    """Return the report of two releases."""
    return {
        **new_report(
            "inspect",
            0,
            before=str(before),
            after=str(after),
            layers=[untested(layer, "no config was inspected", "rlaudit inspect CONFIG") for layer in Layer],
            not_seen=["what a config or a framework sets: this is vLLM alone"],
        ),
        "description": f"what moves for an API server without any argument on {machine.name}",
        "settings": _rows(before, after, machine),
    }


def _rows(before: Version, after: Version, machine: Machine) -> list[Setting]:
    """Return a row for each name: what a new argument resolves to says more than that it is new."""
    rows: dict[tuple[str, str], Setting] = {}
    for change in moved(before, after, machine):
        row = _row(change, before, after)
        key = (row.group, row.name)
        kept = rows.setdefault(key, row)
        if change.change is Change.ADDED:
            rows[key] = replace(kept, effective_from=row.effective_from)
    return list(rows.values())


def _row(change: Moved, before: Version, after: Version) -> Setting:
    was, now = as_json(change.before), as_json(change.after)
    if change.change is Change.ADDED:
        was = {"absent": f"vLLM {before} has no {change.name}"}
    if change.change is Change.REMOVED:
        now = {"absent": f"vLLM {after} has no {change.name}"}
    return Setting(
        config=None,
        group=GROUPS[change.part],
        name=change.name,
        written=None,
        effective_from=was,
        effective_to=now,
        origin="engine",
        moves=True,
        note=". ".join(part.rstrip(".") for part in (change.note, change.why) if part),
        location=None,
    )


def moved_lines(before: Version, after: Version, machine: Machine) -> list[str]:
    """Return what moves between two releases as plain lines; what was added is counted and named, not explained."""
    changes = moved(before, after, machine)
    lines = [remark for version in (before, after) if (remark := Catalogue.at(version).remark)]
    lines.append(f"vLLM {before} -> {after} on {machine.name}, an API server without any argument")
    for part, head in _HEADS.items():
        lines += _section(head, [item for item in changes if (item.change, item.part) == (Change.VALUE, part)])
        if part is Part.RESOLVED and has_v0(before) and not has_v0(after):
            old_engine = f"The same where {before} runs with VLLM_USE_V1=0 (V0)"
            lines += _section(old_engine, list(moved_values(before, after, machine, v0=True)))
    for change, section in ((Change.REMOVED, _removed), (Change.ADDED, _added)):
        for part in Part:
            lines += section(part, [item for item in changes if (item.change, item.part) == (change, part)])
    return lines


def _section(head: str, changes: Sequence[Moved]) -> list[str]:
    lines = ["", f"{head} ({len(changes)})"] if changes else []
    for change in changes:
        lines.append(f"  {change.name}: {text_of(change.before)} -> {text_of(change.after)}")
        if change.why:
            lines.append(f"      {change.layer}: {change.why}")
        if change.note:
            lines.append(f"      {change.note}")
    return lines


def _removed(part: Part, changes: Sequence[Moved]) -> list[str]:
    """Return a line for each change that has advice, and the names of the others."""
    lines = ["", f"Removed {part} ({len(changes)})"] if changes else []
    lines += [f"  {change.name}: {change.why}" for change in changes if change.why]
    silent = [change.name for change in changes if not change.why]
    return lines + ([f"  {', '.join(silent)}"] if silent else [])


def _added(part: Part, changes: Sequence[Moved]) -> list[str]:
    names = ", ".join(change.name for change in changes)
    return ["", f"Added {part} ({len(changes)})", f"  {names}"] if changes else []


def text_of(value: Any) -> str:
    """Return a value as a line shows it, cut if it is long."""
    if isinstance(value, Unknown):
        return f"unknown ({value.reason})"
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
