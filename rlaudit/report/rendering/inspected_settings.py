"""The settings of one inspected config, sorted into those that move, those that are open, and the others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlaudit.report.rendering.outline import Block, Folded, Lines, Table
from rlaudit.report.shown_value import shown
from rlaudit.text.counted import counted
from rlaudit.vllm.decides_nothing import DECIDES_NOTHING

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Config, Setting

MOVES = "Settings whose value moves, or that do not reach the engine as written"
RAN = "Settings as the config gives them, and as vLLM ran them"
OPEN, BY_RECORDING = "Open", " (this file does not decide these; rlaudit record shows the values of a run)"
# Settings that one fact leaves open are named up to this number; if there are more they are counted.
MOST_NAMES = 4
# The longest value that is shown beside an open one; a longer one stands in the table that a page folds.
LONGEST_VALUE = 30
# The settings that vLLM gets. Another setting that does not move differs from what is written only in its words.
_OF_VLLM = ("engine", "sampling", "environment")


@dataclass(frozen=True)
class _Rows:
    """The rows of one config that are worth a line."""

    moving: "list[Setting]" = field(default_factory=list)
    deciding_nothing: "list[Setting]" = field(default_factory=list)
    open: "dict[str, list[Setting]]" = field(default_factory=dict)  # by the fact that would settle them


def settings_blocks(config: "Config", settings: "Sequence[Setting]", grave: Collection[str | None]) -> list[Block]:
    """Return the table of what moves, what is open, and what a page folds.

    grave: the settings that findings above notes are about.
    """
    rows = _sorted(config, settings, grave)
    title = RAN if config.recorded else MOVES
    blocks: list[Block] = [_table(config, rows.moving, title)] if rows.moving else []
    lines = [*_open_lines(config, rows.open), *not_seen_lines(config)]
    settled = "" if config.recorded else BY_RECORDING
    blocks += [Lines(lines, f"{OPEN}{settled}")] if lines else []
    unknown = [row for group in rows.open.values() for row in group]
    folded = {"settings that decide nothing": rows.deciding_nothing, "settings with an open value": unknown}
    return [
        *blocks,
        *(
            Folded(f"{kind.capitalize()} ({len(hidden)})", _table(config, hidden), kind=kind)
            for kind, hidden in folded.items()
            if hidden
        ),
    ]


def _sorted(config: "Config", settings: "Sequence[Setting]", grave: Collection[str | None]) -> _Rows:
    rows = _Rows()
    for row in settings:
        if not (row.moves or _arrives_changed(row) or (config.recorded and _was_written(row))):
            continue
        if row.name not in grave and _decides_nothing(row):
            rows.deciding_nothing.append(row)
        elif _is_unknown(row.effective_from) or _is_unknown(row.effective_to):
            rows.open.setdefault(row.open_because or "", []).append(row)
        else:
            rows.moving.append(row)
    return rows


def _decides_nothing(row: "Setting") -> bool:
    """Return whether a row is vLLM's default of a setting that decides nothing, or the same value in other words."""
    if row.written is None:
        return row.origin == "engine" and row.name in DECIDES_NOTHING
    return not row.moves and row.group not in _OF_VLLM and not _is_unknown(row.effective_to)


def _table(config: "Config", rows: "Sequence[Setting]", title: str = "") -> Table:
    """Return the table, with a column for what is written only if something is."""
    versions = config.versions
    migrates = versions["from"] != versions["to"]
    written = any(row.written is not None for row in rows)
    header = ["setting", *(["written"] if written else []), *([f"vLLM {versions['from']}"] if migrates else [])]
    cells = [
        [
            row.name,
            *(["-" if row.written is None else shown(row.written)] if written else []),
            *([_cell(row.effective_from, row)] if migrates else []),
            _cell(row.effective_to, row),
            row.origin,
        ]
        for row in rows
    ]
    return Table([*header, f"vLLM {versions['to']}", "decided by"], cells, title, values=True)


def _cell(value: Any, row: "Setting") -> str:
    """Return a value for a column. The list of open settings says why a value is unknown."""
    if _is_unknown(value):
        return "unknown"
    if isinstance(value, dict) and set(value) == {"absent"} and row.group == "environment":
        return "not read"
    return shown(value)


def _open_lines(config: "Config", open_: "dict[str, list[Setting]]") -> list[str]:
    """Return a line for each fact; the fact that leaves most settings open comes first.

    A fact that is not the reason of the values themselves is the one that settles them.
    """
    lines = []
    for fact, rows in sorted(open_.items(), key=lambda entry: -len(entry[1])):
        side, known = _side(config, rows)
        which = f"{_names(rows)}{side}"
        reasons = {value["unknown"] for row in rows for value in (row.effective_from, row.effective_to)
                   if _is_unknown(value)}  # fmt: skip
        are = "is" if len(rows) == 1 else "are"
        lines.append((f"{which} {are} open: {fact}" if fact in reasons else f"{fact}. So {which} {are} open") + known)
    return lines


def not_seen_lines(config: "Config") -> list[str]:
    """Return what a reader did not see, with one line for several variables that it took at their defaults."""
    taken = config.taken_defaults or ()
    if len(taken) <= 1:
        return list(config.not_seen)
    of_defaults = {default.sentence for default in taken}
    names = ", ".join(default.variable for default in taken)
    line = f"{len(taken)} variables are taken at their defaults, unless the environment sets them: {names}"
    return [line, *(sentence for sentence in config.not_seen if sentence not in of_defaults)]


def _names(rows: "Sequence[Setting]") -> str:
    return ", ".join(row.name for row in rows) if len(rows) <= MOST_NAMES else f"{counted(len(rows), 'setting')}"


def _side(config: "Config", rows: "Sequence[Setting]") -> tuple[str, str]:
    """Say with which release the values are open, if all with the other are known, and a single known value."""
    old, new = config.versions["from"], config.versions["to"]
    before = {_is_unknown(row.effective_from) for row in rows}
    after = {_is_unknown(row.effective_to) for row in rows}
    if old == new or len(before | after) == 1 or len(before) + len(after) != 2:
        return "", ""
    side, other = (new, old) if after == {True} else (old, new)
    value = shown(rows[0].effective_from if after == {True} else rows[0].effective_to)
    known = f". With {other}, {rows[0].name} is {value}" if len(rows) == 1 and len(value) <= LONGEST_VALUE else ""
    return f" with vLLM {side}", known


def _is_unknown(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"unknown"}


def _was_written(row: "Setting") -> bool:
    """Return whether the config sets it for vLLM: an argument, or one of vLLM's variables."""
    of_vllm = row.group == "engine" or (row.group == "environment" and row.name.startswith("VLLM_"))
    return of_vllm and row.written is not None and row.origin != "engine"


def _arrives_changed(row: "Setting") -> bool:
    """Return whether another value arrives than the written one. Several dialects write a bare flag as ""."""
    written, effective = row.written, row.effective_to
    return written is not None and written != effective and not (written == "" and effective is True)
