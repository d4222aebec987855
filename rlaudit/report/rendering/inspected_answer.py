"""The first screen of an inspection with two sides: what the move brings, and what is so today already.

Nothing is measured, so a layer is *changed*, or *no change found*, or *not measured* if no rule looked at it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rlaudit.layers import Layer
from rlaudit.report.rendering.outline import Block, Lines, Prose, Table
from rlaudit.severity import Severity
from rlaudit.text.counted import counted
from rlaudit.text.enumerated import enumerated

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding, Gone, Inspected
    from rlaudit.report.report import Report

READ = "read from files and from the defaults of each release; nothing was measured"
NAME_IT = (
    "Name the launcher or YAML of your training: rlaudit inspect FILE --from A --to B. "
    "`rlaudit list frameworks` says what is read."
)
# The rule that names known defects which one missing fact leaves open.
UNDECIDED = "advisory-undecided"
SEVERITIES = tuple(reversed(Severity))
# So many rules and files fit the first screen; further ones are counted.
MOST_RULES, MOST_FILES = 3, 3


def answer(report: "Report", findings: "Sequence[Finding]") -> list[Block]:
    """Return at most two sentences, known defects that one fact leaves open, and the layers.

    What was given and could not be read comes first. Without a config that moves there is no answer beside the defects.
    findings: the gravest first.
    """
    inspected = report.get("inspection")
    configs = report.get("configs", ())
    if inspected is None:
        return []
    unread: list[Block] = [Prose(_unread(inspected))] if any(file.wanted for file in inspected.unread) else []
    if not configs and not report["settings"]:
        # The last line is of every inspection: that the engine did not run.
        *reasons, _ = report["not_seen"] or [""]
        more = ["More is listed below."] if len(reasons) > 1 else []
        why = [*reasons[:1], *more] or [NAME_IT]
        return unread or [Prose([f"No rollout config was found ({counted(inspected.files_read, 'file')} read).", *why])]
    open_defects = (finding for finding in findings if finding.rule == UNDECIDED)
    lines = list(dict.fromkeys(f"{finding.message} See: {finding.look}" for finding in open_defects))
    undecided: list[Block] = [Lines(lines, mark="")] if lines else []
    if not any(config.versions["from"] != config.versions["to"] for config in configs):
        return [*unread, *undecided]
    brought = [finding for finding in findings if finding.so_today is False]
    standing = [finding for finding in findings if finding.so_today is True]
    sentences = [about_the_move(brought, inspected.gone or ()), *_standing(standing, report["versions"]["from"])]
    notes = any(finding.severity == Severity.NOTE for finding in findings)
    read = f"{READ}; -v shows the notes" if notes else READ
    return [
        *unread,
        Prose(sentences),
        *undecided,
        _layers(report, inspected, brought, standing),
        Lines([read], mark=""),
    ]


def _unread(inspected: "Inspected") -> list[str]:
    """Return what was given on the command line and is in no verdict."""
    files = [file for file in inspected.unread if file.wanted]
    lines = [f"{file.path} could not be read: {file.reason}." for file in files[:MOST_FILES]]
    left = len(files) - MOST_FILES
    return [*lines, f"{left} more files could not be read (listed below)."] if left > 0 else lines


def about_the_move(brought: "Sequence[Finding]", gone: "Sequence[Gone]") -> str:
    """Return what the move brings and what goes with it. brought: the gravest first."""
    brings = _counted_and_named(brought) if brought else "no new finding"
    graver = [ended for ended in gone if ended.severity != Severity.NOTE]
    counts = _counted(ended.severity for ended in graver for _ in range(ended.number))
    ends = f" Gone after the move: {counts} ({_named([ended.rule for ended in graver])})." if graver else ""
    return f"The move brings {brings}.{ends}"


def _standing(standing: "Sequence[Finding]", before: str | None) -> Iterator[str]:
    """Yield what today's release has as well; the findings themselves speak of the new one."""
    if standing:
        today = "Today" if before is None else f"Today ({before})"
        yield f"{today} and after the move: {_counted_and_named(standing)}."


def _counted_and_named(findings: "Sequence[Finding]") -> str:
    """Return `2 warnings (seed-changed, half-precision-head) and 1 note`: each rule once, the gravest first."""
    parts: list[str] = []
    for severity in SEVERITIES:
        rules = [finding.rule for finding in findings if finding.severity == severity]
        named = f" ({_named(rules)})" if severity != Severity.NOTE else ""
        parts += [f"{_counted([severity] * len(rules))}{named}"] if rules else []
    return enumerated(parts)


def _named(rules: Sequence[str]) -> str:
    once = list(dict.fromkeys(rules))
    # `and 1 more` takes as much room as the name.
    shown = once if len(once) == MOST_RULES + 1 else once[:MOST_RULES]
    left = len(once) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def _layers(
    report: "Report", inspected: "Inspected", brought: "Sequence[Finding]", standing: "Sequence[Finding]"
) -> Table:
    columns = []
    for layer in Layer:
        moves = [finding.severity for finding in brought if finding.layer is layer]
        stays = [finding.severity for finding in standing if finding.layer is layer]
        gone = [ended.severity for ended in inspected.gone or () if ended.layer is layer for _ in range(ended.number)]
        cells = [_found([*stays, *gone]), _found([*stays, *moves]), _changed(len(gone), len(moves))]
        looked = inspected.layers is None or layer in inspected.layers
        columns.append(cells if looked else ["not measured"] * len(cells))
    versions = report["versions"]
    sides = [f" ({version})" if version is not None else "" for version in (versions["from"], versions["to"])]
    names = (f"today{sides[0]}", f"after{sides[1]}", "the move")
    header = ("", *(f"{number}. {layer}" for number, layer in enumerate(Layer, start=1)))
    return Table(header, [[name, *cells] for name, *cells in zip(names, *columns, strict=True)])


def _changed(gone: int, new: int) -> str:
    numbers = ", ".join(f"{number} {what}" for number, what in ((gone, "gone"), (new, "new")) if number)
    return f"changed: {numbers}" if numbers else "no change found"


def _found(severities: Sequence[Severity]) -> str:
    return _counted(severities) if severities else "nothing found"


def _counted(severities: Iterable[Severity]) -> str:
    """Return `2 errors, 1 note`."""
    numbers = Counter(severities)
    return ", ".join(
        f"{numbers[severity]} {severity}{'' if numbers[severity] == 1 else 's'}"
        for severity in SEVERITIES
        if numbers[severity]
    )
