"""The findings that a user has decided to live with, and whether that decision still holds.

`# rlaudit: ignore[rule] reason` speaks for its line or, on a line of its own, for the next one (for all of a command
that backslashes continue); `# rlaudit: ignore-file[rule] reason` for the file; `[[tool.rlaudit.ignore]]` in the
settings for the files of a pattern, which is the way for JSON. `ignore[rule, until=2026-12-31]` ends by itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.settings.place import Place
from rlaudit.severity import Severity
from rlaudit.text.did_you_mean import did_you_mean

_COMMENT = re.compile(
    r"(?:^|(?<=\s))#\s*rlaudit:\s*ignore(?P<file>-file)?\s*\[(?P<names>[^\]\n]*)\][ \t]*(?P<reason>[^\r\n]*)"
)
_COMMENT_ONLY = re.compile(r"\s*#")

RULES: Mapping[str, str] = {
    "suppression-without-reason": (
        "A suppression has no reason.\n\n"
        "It works without a reason, but the next reader of the config cannot tell whether it still holds. Write one "
        "behind the bracket:\n    # rlaudit: ignore[raw-logprobs] the loss recomputes them"
    ),
    "suppression-unused": (
        "A suppression suppresses nothing.\n\n"
        "The rule it names ran on this file and found nothing there, so it only hides the next problem. Remove it."
    ),
    "suppression-expired": (
        "A suppression is past its day.\n\n"
        "Its `until` has passed, so the findings are back. Resolve them, or set a new day."
    ),
    "suppression-unknown-rule": (
        "A suppression names a rule that does not exist.\n\n"
        "No rule has this name, so nothing is suppressed. `rlaudit list rules` prints the names."
    ),
}


# "baseline" is in reports of an rlaudit before 0.4 only.
SuppressionKind = Literal["inline", "file", "settings", "baseline"]


@dataclass(frozen=True)
class Suppression:
    """One decision of a user."""

    rules: tuple[str, ...]
    reason: str
    # The date of `until`, None without one.
    day: date | None
    place: Place
    kind: SuppressionKind
    # First and last line that it covers, None for the whole file.
    lines: tuple[int, int] | None = None
    # Whether it covers a file, by its path.
    applies_to: Callable[[str], bool] = lambda _path: True
    # Why its text cannot be read, for one with an unreadable day.
    malformed: str = ""

    def covers(self, finding: Finding) -> bool:
        """Return whether it covers this finding's rule and place."""
        if finding.rule not in self.rules or not self.applies_to(finding.place.path):
            return False
        return self.lines is None or self.lines[0] <= finding.place.line <= self.lines[1]


@dataclass(frozen=True)
class Suppressed:
    """Why a finding does not count."""

    kind: SuppressionKind
    reason: str
    place: Place | None = None


@dataclass(frozen=True)
class Judged:
    """A finding that counts, or is suppressed."""

    finding: Finding
    # None if it counts.
    suppressed: Suppressed | None = None


def inline_suppressions(text: str, path: str) -> tuple[Suppression, ...]:
    """Return the suppressions written in a file."""
    if "rlaudit:" not in text:
        return ()
    lines = text.splitlines()
    return tuple(_in_line(lines, number, match, path) for number, line in enumerate(lines, start=1)
                 for match in _COMMENT.finditer(line))  # fmt: skip


def _in_line(lines: Sequence[str], number: int, match: re.Match[str], path: str) -> Suppression:
    rules, day, malformed = [], None, ""
    for word in filter(None, (part.strip() for part in match["names"].split(","))):
        name, equals, value = word.partition("=")
        if not equals:
            rules.append(word)
        elif name.strip() == "until":
            day, malformed = _day(value.strip())
        else:
            malformed = f"{name.strip()} is not known here, only until"
    place = Place(path, number, match.start() + 1, "")
    # A second comment on the same line is no part of the reason.
    reason = match["reason"].split("# rlaudit:")[0].strip().lstrip(":-").strip()
    whole_file = match["file"] is not None
    kind: SuppressionKind = "file" if whole_file else "inline"
    span = None if whole_file else _lines_spoken_for(lines, number)
    return Suppression(tuple(rules), reason, day, place, kind, span, lambda other: other == path, malformed)


def _day(text: str) -> tuple[date | None, str]:
    try:
        return date.fromisoformat(text), ""
    except ValueError:
        return None, f"until={text} is not a day such as 2026-12-31"


def _lines_spoken_for(lines: Sequence[str], number: int) -> tuple[int, int]:
    if not _COMMENT_ONLY.match(lines[number - 1]):
        return number, number
    first = number
    while first < len(lines) and (not lines[first].strip() or _COMMENT_ONLY.match(lines[first])):
        first += 1
    last = first
    while last < len(lines) - 1 and lines[last].rstrip().endswith("\\"):
        last += 1
    return number, last + 1


def judge(
    findings: Sequence[Finding],
    suppressions: Sequence[Suppression],
    ran: Sequence[str],
    existing: Sequence[str],
    paths: Sequence[str],
    today: date,
) -> tuple[Judged, ...]:
    """Return every finding with its suppression, and the findings about the suppressions themselves.

    ran: rules that ran; only their suppressions can be unused. existing: the names of all rules. paths: the inspected
    files. A suppression whose day has passed suppresses nothing.
    """
    in_force = [suppression for suppression in suppressions if suppression.day is None or today <= suppression.day]
    judged = []
    used: set[tuple[int, str]] = set()
    for finding in findings:
        covering = [suppression for suppression in in_force if suppression.covers(finding)]
        used |= {(id(suppression), finding.rule) for suppression in covering}
        judged.append(Judged(finding, Suppressed(covering[0].kind, covering[0].reason, covering[0].place))
                      if covering else Judged(finding))  # fmt: skip
    for suppression in suppressions:
        if any(map(suppression.applies_to, paths)):
            useful = {rule for key, rule in used if key == id(suppression)}
            problems = _problems(suppression, suppression in in_force, useful, ran, existing)
            judged += [Judged(_finding(suppression, rule, problem)) for rule, problem in problems]
    return tuple(judged)


def _problems(
    suppression: Suppression, in_force: bool, used: set[str], ran: Sequence[str], existing: Sequence[str]
) -> Iterator[tuple[str, str]]:
    if suppression.malformed:
        yield "suppression-unknown-rule", f"this suppression cannot be read: {suppression.malformed}."
    if not suppression.rules:
        yield "suppression-unknown-rule", "this suppression names no rule; write ignore[rule] reason."
    if not suppression.reason:
        yield "suppression-without-reason", f"{_title(suppression)} gives no reason; write one behind the bracket."
    if not in_force:
        yield "suppression-expired", f"{_title(suppression)} ended on {suppression.day}; its findings count again."
    for rule in suppression.rules:
        if rule not in existing:
            yield (
                "suppression-unknown-rule",
                f"no rule is called {rule!r}; {did_you_mean(rule, existing, 'see: rlaudit list rules')}.",
            )
        elif in_force and rule in ran and rule not in used:
            yield "suppression-unused", f"{rule} found nothing that this suppression speaks for; remove it."


def _title(suppression: Suppression) -> str:
    return f"the suppression of {', '.join(suppression.rules) or 'nothing'}"


def _finding(suppression: Suppression, rule: str, problem: str) -> Finding:
    message = problem[0].upper() + problem[1:]
    names, change = ",".join(suppression.rules), Action(ActionKind.CHANGE, _title(suppression))
    return Finding(rule, None, Severity.WARNING, message, suppression.place, "", names, action=change)


def settings_suppression(entry: Mapping[str, Any], place: Place, applies_to: Callable[[str], bool]) -> Suppression:
    """Return the suppression of a checked `[[tool.rlaudit.ignore]]` table."""
    rules = entry["rule"] if isinstance(entry["rule"], list) else [entry["rule"]]
    return Suppression(
        tuple(rules), entry.get("reason", "").strip(), entry.get("until"), place, "settings", None, applies_to
    )
