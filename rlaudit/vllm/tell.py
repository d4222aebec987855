"""The catalogue in words: what moves between two releases, and which releases are known."""

from collections.abc import Sequence
from typing import Any

from packaging.version import Version

from rlaudit.configs.syntax.node import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import Change, Moved, Part, moved, moved_values
from rlaudit.vllm.resolution.engine import has_v0
from rlaudit.vllm.review import unreviewed

_HEADS = {
    Part.RESOLVED: "What an engine runs with when the config says nothing",
    Part.ARGUMENT: "Declared defaults",
    Part.VARIABLE: "Defaults of environment variables",
    Part.SAMPLING: "Defaults of sampling parameters",
    Part.METHOD: "Methods with other parameters",
}
_WIDEST = 60


def moved_lines(before: Version, after: Version, machine: Machine) -> list[str]:
    """What moves between two releases as plain lines; what was added is counted and named, not explained."""
    changes = moved(before, after, machine)
    lines = [said for version in (before, after) if (said := Catalogue.at(version).said)]
    lines.append(f"vLLM {before} -> {after} on {machine.name}, an API server without any argument")
    for part, head in _HEADS.items():
        lines += _section(head, [one for one in changes if (one.change, one.part) == (Change.VALUE, part)])
        if part is Part.RESOLVED and has_v0(before) and not has_v0(after):
            old_engine = f"The same where {before} runs with VLLM_USE_V1=0 (V0)"
            lines += _section(old_engine, list(moved_values(before, after, machine, v0=True)))
    for change, section in ((Change.REMOVED, _removed), (Change.ADDED, _added)):
        for part in Part:
            lines += section(part, [one for one in changes if (one.change, one.part) == (change, part)])
    return lines


def _section(head: str, changes: Sequence[Moved]) -> list[str]:
    lines = ["", f"{head} ({len(changes)})"] if changes else []
    for change in changes:
        lines.append(f"  {change.name}: {_text(change.before)} -> {_text(change.after)}")
        if change.why:
            lines.append(f"      {change.layer}: {change.why}")
        if change.note:
            lines.append(f"      {change.note}")
    return lines


def _removed(part: Part, changes: Sequence[Moved]) -> list[str]:
    """Those with advice one by one, the others by name."""
    lines = ["", f"Removed {part} ({len(changes)})"] if changes else []
    lines += [f"  {one.name}: {one.why}" for one in changes if one.why]
    silent = [one.name for one in changes if not one.why]
    return lines + ([f"  {', '.join(silent)}"] if silent else [])


def _added(part: Part, changes: Sequence[Moved]) -> list[str]:
    """By name."""
    return ["", f"Added {part} ({len(changes)})", f"  {', '.join(one.name for one in changes)}"] if changes else []


def version_lines() -> list[str]:
    """One line for every catalogued release."""
    lines = []
    for version in known_versions():
        catalogue = Catalogue.at(version)
        open_rules = unreviewed(version)
        engines = "V1 or V0" if has_v0(version) else "V1"
        review = f"; not reviewed: {', '.join(open_rules)}" if open_rules else ""
        lines.append(
            f"{version!s:<12} {engines:<9} {len(catalogue.engine):>3} arguments  "
            f"{len(catalogue.variables):>3} variables  from {catalogue.source}{review}"
        )
    return lines


def _text(value: Any) -> str:
    if isinstance(value, Unknown):
        return f"unknown ({value.reason})"
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
