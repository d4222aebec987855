"""`rlaudit explain 0.8.5..0.18.1`: what moves between two releases of vLLM, without a config.

What moves logprobs comes first, each with the setting that keeps what the old release does, if the new one has such a
setting; what the new release adds is only counted, since no config can have it yet.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from packaging.version import Version

from rlaudit.errors import UsageError
from rlaudit.inspection.versions import version_named
from rlaudit.rules.advisories import crossed
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import Change, Moved, VllmPart, moved, moved_values, text_of
from rlaudit.vllm.resolution.engine import has_v0
from rlaudit.vllm.resolve import resolve

_OTHERS = {
    VllmPart.ARGUMENT: "Other declared defaults",
    VllmPart.VARIABLE: "Other defaults of environment variables",
    VllmPart.SAMPLING: "Other defaults of sampling parameters",
    VllmPart.METHOD: "Other methods with other parameters",
}


def move_page(old: str, new: str, machine: Machine) -> str:
    """Return the page of a move. Raises UsageError for what is no release, and for one release on both sides."""
    before, after = version_named(old), version_named(new)
    if before == after:
        raise UsageError(f"{old}..{new} is one release", f"rlaudit explain {before} has what it decides")
    remarks = [remark for version in (before, after) if (remark := Catalogue.at(version).remark)]
    title = f"vLLM {before} -> {after}, an API server on {machine.name} if nothing is set"
    inspect = f"rlaudit inspect CONFIG --from {before} --to {after} says what of this a config meets."
    parts = ["\n".join([*remarks, title]), *_parts(before, after, machine), inspect]
    return "\n\n".join(filter(None, parts))


def _parts(before: Version, after: Version, machine: Machine) -> Iterator[str]:
    changes = moved(before, after, machine)
    values = [change for change in changes if change.change is Change.VALUE]
    telling = [change for change in values if change.part is VllmPart.RESOLVED or change.why]
    nothing = "Nothing found that moves the logprobs if nothing is set and the model is not known."
    yield _section("What moves the logprobs", _lines(telling, after, machine)) or nothing
    if has_v0(before) and not has_v0(after):
        of_v0 = moved_values(before, after, machine, v0=True)
        yield _section(f"The same if {before} runs with VLLM_USE_V1=0 (V0)", _lines(of_v0, after, machine))
    defects = crossed(before, after)
    sides = ((before, after, defects.left), (after, before, defects.entered))
    for having, other, named in sides:
        known = [f"{name}: {advisory.sentence}" for name, advisory in named.items()]
        yield _section(f"Defects that {having} has and {other} has not (rlaudit explain NAME)", known)
    for part, head in _OTHERS.items():
        silent = [change for change in values if change.part is part and change not in telling]
        yield _section(head, _lines(silent, after, machine))
    for part in VllmPart:
        gone = [change for change in changes if (change.change, change.part) == (Change.REMOVED, part)]
        yield _section(f"Removed {part}s", _removed(gone))
    added = {part: sum((change.change, change.part) == (Change.ADDED, part) for change in changes) for part in VllmPart}
    yield _section("Added", [f"{part}s: {number}" for part, number in added.items() if number])


def _section(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, *(f"  {line}" for line in lines)]) if lines else ""


def _lines(changes: Sequence[Moved], after: Version, machine: Machine) -> list[str]:
    lines = []
    for change in changes:
        lines.append(f"{change.name}: {text_of(change.before)} -> {text_of(change.after)}")
        lines += [f"    {change.layer}: {change.why}"] if change.why else []
        lines += [f"    {change.note}"] if change.note else []
        kept = _kept_by(change, after, machine)
        lines += [f"    as before: set {kept}"] if kept else []
    return lines


def _kept_by(change: Moved, after: Version, machine: Machine) -> str:
    """Return the argument with which the new release runs as the old one did; "" if it has none."""
    if change.part is not VllmPart.RESOLVED:
        return ""
    # A release without a switch runs as with a false one.
    value: Any = False if change.before is None and change.after is True else change.before
    if value is None or isinstance(value, Unknown):
        return ""
    of_logprobs = change.name == "logprobs_semantics"
    name, written = ("logprobs_mode", f"{value}_logprobs") if of_logprobs else (change.name, value)
    catalogue = Catalogue.at(after)
    if name not in catalogue.engine:
        return ""
    config = RolloutConfig("vllm", "", engine={name: Setting(name, written, written, Origin.FILE)})
    runs = resolve(config, catalogue, machine).setting(change.name).value == value
    return f"{name}: {str(written).lower() if isinstance(written, bool) else written}" if runs else ""


def _removed(changes: Sequence[Moved]) -> list[str]:
    """Return a line for each name with advice, and one with the names of the others."""
    silent = ", ".join(change.name for change in changes if not change.why)
    return [*(f"{change.name}: {change.why}" for change in changes if change.why), *([silent] if silent else [])]
