"""Apply the fixes of findings to a file, in memory, until none is left.

Fixes that touch the same characters are made one after the other, each on the file as the last one left it, and the
file is inspected again in between, against what ran before all of them: a fix that would make it unreadable, or lose an
engine, is taken back. So is a safe one without the proof that it keeps what runs today (proof.py). What an earlier fix
wrote is not overwritten by a later one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rlaudit.inspection.files import TextFile
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.proof import broken_promise
from rlaudit.rules.audit.finding import Finding
from rlaudit.settings.place import Edit
from rlaudit.settings.rollout_config import RolloutConfig

MOST_ROUNDS = 50
_UNPROVEN = "it is not shown to keep what runs today"
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class EditedSpan:
    """Characters that an edit wrote, in the present text."""

    start: int
    end: int
    # The rule whose edit it was.
    by: str


class Misplaced(ValueError):
    """An edit that does not fit the text it is for."""


@dataclass(frozen=True, eq=False)
class FixedFile:
    """A file with its fixes made."""

    original: TextFile
    inspected: InspectedFile
    made: tuple[Finding, ...]
    # Why a fix was not made, in sentences.
    refused: tuple[str, ...]
    # Findings whose fix is not shown to keep what runs today.
    unproven: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        """The text with the fixes."""
        return self.inspected.file.source.text

    @property
    def changed(self) -> bool:
        """Whether a fix changed the text."""
        return self.text != self.original.source.text


def fix_file(
    inspected: InspectedFile,
    context: Context,
    unsafe: bool,
    wanted: Callable[[InspectedFile], Sequence[Finding]],
) -> FixedFile:
    """Make the safe fixes of the wanted findings, with `unsafe` all of their fixes."""
    original, current = inspected.file, inspected
    today = [config.audit.before.config for config in inspected.configs]
    made: list[Finding] = []
    refused: list[str] = []
    unproven: list[Finding] = []
    spans: list[EditedSpan] = []
    # Two rules at odds propose the same fixes again and again: each is made only as often as it was proposed at first,
    # once per engine.
    tried: Counter[Key] = Counter()
    first = Counter(map(key_of, wanted(current)))
    at_once = MOST_ROUNDS
    for _ in range(MOST_ROUNDS):
        untried = [finding for finding in wanted(current) if tried[key_of(finding)] < max(1, first[key_of(finding)])]
        fixable = [finding for finding in untried if finding.fix is not None and (finding.fix.safe or unsafe)]
        batch, problems = _batch(fixable, current, spans, at_once)
        refused += problems
        if not batch:
            break
        edits = list({edit: finding.rule for finding in reversed(batch) for edit in _edits(finding)}.items())
        later, problem = _inspected_again(current, [edit for edit, _ in edits], context, today)
        broken = broken_promise(current, later) if later is not None and not unsafe else None
        if broken is not None:
            later, problem = None, f"{_UNPROVEN}: {broken}"
        if later is not None:
            current, spans = later, moved(spans, edits)
            made += batch
            tried.update(map(key_of, batch))
        elif len(batch) == 1:
            refused.append(f"{batch[0].place}: the fix of {batch[0].rule} is not made: {problem}")
            tried[key_of(batch[0])] = MOST_ROUNDS
            unproven += batch if broken is not None else []
        else:
            at_once = 1
    return FixedFile(original, current, tuple(made), tuple(dict.fromkeys(refused)), tuple(unproven))


def _batch(
    findings: Sequence[Finding], current: InspectedFile, spans: Sequence[EditedSpan], at_once: int
) -> tuple[list[Finding], list[str]]:
    """Return the findings whose fixes can be made together, and why others are refused. The rest waits for a round."""
    batch: list[Finding] = []
    taken: list[Edit] = []
    refused: list[str] = []
    text = current.file.source.text
    for finding in findings:
        edits = _edits(finding)
        elsewhere = {edit.path for edit in edits} - {current.file.path}
        earlier = next((span.by for edit in edits for span in spans if undoes(edit, span, text)), None)
        if elsewhere:
            refused.append(
                f"{finding.place}: the fix of {finding.rule} is in {', '.join(sorted(elsewhere))}: inspect that file"
            )
        elif earlier is not None:
            refused.append(f"{finding.place}: the fix of {finding.rule} overlaps that of {earlier}, which came first")
        elif len(batch) < at_once and not any(
            overlap(edit, other) for edit in edits for other in taken if edit != other
        ):
            batch.append(finding)
            taken += edits
    return batch, refused


def _inspected_again(
    current: InspectedFile, edits: Sequence[Edit], context: Context, today: Sequence[RolloutConfig]
) -> tuple[InspectedFile | None, str]:
    try:
        text = apply(current.file.source.text, edits)
    except Misplaced as error:
        return None, str(error)
    source = current.file.source.with_text(text)
    later = inspect_file(replace(current.file, source=source), context, current.versions, today)
    if later.unreadable:
        return None, f"the file could not be read afterwards ({later.unreadable})"
    if len(later.configs) != len(current.configs) or len(later.bugs) > len(current.bugs):
        return None, "the file would not say the same engines afterwards"
    return later, ""


def _edits(finding: Finding) -> tuple[Edit, ...]:
    return finding.fix.edits if finding.fix is not None else ()


def key_of(finding: Finding) -> Key:
    """Return what a fix is known by while edits move its place."""
    fix = finding.fix
    return finding.rule, finding.setting, finding.place.setting, fix.description if fix is not None else ""


def overlap(edit: Edit, other: Edit) -> bool:
    """Return whether two edits touch the same characters, or insert at the same place: their order would be open."""
    if edit.start == edit.end or other.start == other.end:
        return edit.start <= other.end and other.start <= edit.end
    return edit.start < other.end and other.start < edit.end


def undoes(edit: Edit, span: EditedSpan, text: str) -> bool:
    """Return whether an edit changes what another one wrote, beyond adding to it or writing a list anew."""
    if edit.start == edit.end or not (edit.start < span.end and span.start < edit.end):
        return False
    return text[span.start : span.end].strip("[]{}(), \n") not in edit.replacement


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with every edit made. Raises Misplaced for one outside the text, or two that overlap."""
    parts: list[str] = []
    done = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        if not done <= edit.start <= edit.end <= len(text):
            raise Misplaced(
                f"an edit of characters {edit.start} to {edit.end} does not fit the {len(text)} of {edit.path}"
            )
        parts += [text[done : edit.start], edit.replacement]
        done = edit.end
    return "".join([*parts, text[done:]])


def moved(spans: Sequence[EditedSpan], edits: Sequence[tuple[Edit, str]]) -> list[EditedSpan]:
    """Return the old spans as the edits move them, and the spans of the edits. edits: each with its author."""
    now = [EditedSpan(_shifted(span.start, edits), _shifted(span.end, edits), span.by) for span in spans]
    for edit, by in edits:
        start = edit.start + sum(_growth(other) for other, _ in edits if other.end <= edit.start and other != edit)
        now.append(EditedSpan(start, start + len(edit.replacement), by))
    return now


def _shifted(offset: int, edits: Sequence[tuple[Edit, str]]) -> int:
    return offset + sum(_growth(edit) for edit, _ in edits if edit.end <= offset)


def _growth(edit: Edit) -> int:
    return len(edit.replacement) - (edit.end - edit.start)
