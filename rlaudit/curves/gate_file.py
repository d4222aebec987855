"""`gates.yaml`: learned gates as a file that a person reads and CI keeps.

The limits are what counts: who edits one, changes that gate. The numbers of the runs say where each came from.
"""

import math
from pathlib import Path
from typing import Any

import yaml

from rlaudit.curves.learned_gates import GateSet, LearnedGate, Part
from rlaudit.errors import UsageError
from rlaudit.files.yaml_file import read_yaml_file

VERSION = 1
HEADER = """\
# Limits that rlaudit curves learned from runs of today's stack: rlaudit curves NEW --gate-file THIS
# Of runs of that stack a share of false_alarms at most leaves any of the limits, which is {sure} % sure.
# Gates of the {last!r} and of {every!r} are for --export: SkyRL and prime-rl look there.
"""
# Of a gate: its key in the file, and whether it may be left out.
_FIELDS = {
    "metric": False, "means": True, "of": False, "steps": False, "today": True, "low": True, "high": True,
    "runs": False, "logarithm": True,
}  # fmt: skip


def written(gates: GateSet) -> str:
    """Return the text of the file."""
    document = {
        "rlaudit-gates": VERSION,
        "false_alarms": gates.alpha,
        "confidence": gates.confidence,
        "runs": list(gates.runs),
        **({"notes": list(gates.notes)} if gates.notes else {}),
        **({"not_learned": dict(gates.not_learned)} if gates.not_learned else {}),
        "gates": [_written(gate) for gate in gates.gates],
    }
    header = HEADER.format(sure=f"{100 * gates.confidence:.0f}", last=str(Part.LAST), every=str(Part.EVERY))
    return header + yaml.safe_dump(document, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)


def read_gates(path: Path) -> GateSet:
    """Return the gates of a file. Raises UsageError for a file that is no such file, with the gate that is wrong."""
    document = read_yaml_file(path)
    version = document.get("rlaudit-gates") if isinstance(document, dict) else None
    if not isinstance(document, dict) or version != VERSION:
        raise UsageError(
            f"{path} holds no gates of rlaudit (rlaudit-gates: {VERSION})",
            f"write one: rlaudit curves --gates-from RUNS --gate-file {path}",
        )
    entries = document.get("gates")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path} has no gates")
    gates = tuple(_read(entry, f"{path}, gate {number}") for number, entry in enumerate(entries, start=1))
    return GateSet(
        alpha=_number(document.get("false_alarms"), f"{path}, false_alarms"),
        confidence=_number(document.get("confidence"), f"{path}, confidence"),
        runs=tuple(str(run) for run in document.get("runs") or ()),
        gates=gates,
        not_learned={str(metric): str(why) for metric, why in (document.get("not_learned") or {}).items()},
        notes=tuple(str(note) for note in document.get("notes") or ()),
    )


def _written(gate: LearnedGate) -> dict[str, Any]:
    fields = {
        "metric": gate.metric,
        "means": gate.canonical or None,
        "of": str(gate.part),
        "steps": [gate.first_step, gate.last_step],
        "today": float(f"{gate.today:.4g}"),
        "low": gate.low,
        "high": gate.high,
        "runs": [float(f"{value:.6g}") for value in gate.values],
        "logarithm": gate.in_logs or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _read(entry: Any, place: str) -> LearnedGate:
    if not isinstance(entry, dict):
        raise UsageError(f"{place} is no mapping")
    unknown = [str(name) for name in entry if name not in _FIELDS]
    missing = [name for name, optional in _FIELDS.items() if not optional and name not in entry]
    if unknown or missing:
        wrong = f"has no {missing[0]}" if missing else f"has {unknown[0]}, which no gate has"
        raise UsageError(f"{place} {wrong}", f"a gate has {', '.join(_FIELDS)}")
    if entry["of"] not in list(Part):
        raise UsageError(f"{place}: no number of a curve is called {entry['of']!r}", f"there are: {', '.join(Part)}")
    steps, runs = entry["steps"], entry["runs"]
    if not isinstance(steps, list) or len(steps) != 2 or not all(type(step) is int for step in steps):
        raise UsageError(f"{place}: steps are the first and the last that count, found {steps!r:.40}")
    if not isinstance(runs, list) or len(runs) < 2:
        raise UsageError(f"{place}: runs are the numbers of two runs at least, found {runs!r:.40}")
    values = tuple(_number(value, f"{place}, runs") for value in runs)
    low, high = (
        None if entry.get(side) is None else _number(entry[side], f"{place}, {side}") for side in ("low", "high")
    )
    if low is None and high is None:
        raise UsageError(f"{place} has no limit", "low, high, or both")
    return LearnedGate(
        metric=str(entry["metric"]),
        canonical=str(entry.get("means") or ""),
        part=Part(entry["of"]),
        first_step=steps[0],
        last_step=steps[1],
        low=low,
        high=high,
        values=values,
        in_logs=bool(entry.get("logarithm")) and min(values) > 0,
    )


def _number(value: Any, place: str) -> float:
    # YAML reads 1e-5 as a word: a number needs a point there.
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{place}: {value!r:.40} is no number")
    return number
