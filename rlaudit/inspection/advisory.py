"""A known defect of vLLM: the releases that have it, seen in their sources, and what must come together for it.

In some releases a setting means something else than its documentation says. An advisory is the data on such a window:
both of its edges as lines of the released sources, the conditions, and the way out. It is reported like a rule's
finding, and only if the release that is moved to has the defect.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from packaging.version import Version

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import Audit, Rule, Side
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.inspection.moved_default import restores
from rlaudit.layers import Layer


@dataclass(frozen=True)
class Seen:
    """A place in a release's sources. release: `0.26.0`. at: `vllm/v1/sample/sampler.py:120`, or a file that is not
    there. says: what stands there.
    """

    release: str
    at: str
    says: str

    @cached_property
    def version(self) -> Version:
        """The release."""
        return Version(self.release)


@dataclass(frozen=True)
class Window:
    """The releases that have a defect, each edge seen from both sides.

    before: the last release without it, None if the oldest known has it. first, last: the first and the last with it.
    fixed: the first without it again, None if the newest known has it.
    """

    first: Seen
    last: Seen
    before: Seen | None = None
    fixed: Seen | None = None

    def holds(self, version: Version) -> bool:
        """Return whether a release has the defect. One that is newer than all known has what the newest has."""
        return self.first.version <= version and (self.fixed is None or version < self.fixed.version)

    def __str__(self) -> str:
        """`0.20.0 to 0.20.2`, `0.26.0`, `0.20.0 and later`."""
        if self.fixed is None:
            return f"{self.first.release} and later"
        return (
            self.first.release
            if self.first.release == self.last.release
            else (f"{self.first.release} to {self.last.release}")
        )


@dataclass(frozen=True)
class Condition:
    """One thing that must hold. says: a clause, `prefix caching is on`. holds: Unknown if a config leaves it open.

    about: the fact that it depends on, which decides every condition that is about it.
    """

    says: str
    holds: Callable[[Side], bool | Unknown]
    about: str = ""


@dataclass(frozen=True)
class Advisory:
    """One defect. The docstring of its file begins with one sentence about it and goes on with what happens.

    severity: if every condition is known to hold. setting: what a finding points at. way_out, confirm: sentences.
    threads: where it is discussed, `vllm#42043`. workarounds: what makes it silent, if it is known to hold. escape:
    engine arguments that end it.
    """

    name: str
    layer: Layer
    severity: Severity
    window: Window
    conditions: tuple[Condition, ...]
    setting: str
    way_out: str
    confirm: str
    threads: tuple[str, ...] = ()
    workarounds: tuple[Condition, ...] = ()
    escape: Mapping[str, Any] = field(default_factory=dict)

    def undecided(self, side: Side) -> tuple[tuple[Condition, Unknown], ...] | None:
        """Return the conditions that one side of an audit leaves open; None if one is false or a workaround holds."""
        if not self.window.holds(side.version):
            return None
        found = []
        for condition in self.conditions:
            held = condition.holds(side)
            if isinstance(held, Unknown):
                found.append((condition, held))
            elif not held:
                return None
        if any(workaround.holds(side) is True for workaround in self.workarounds):
            return None
        return tuple(found)


def rule_of(advisory: Advisory, sentence: str) -> Rule:
    """Return the rule that reports an advisory. sentence: what the advisory's file says first."""

    def check(audit: Audit) -> Iterator[Finding]:
        """Yield a finding if every condition is known to hold in the release that is moved to."""
        if advisory.undecided(audit.after) != ():
            return
        already = audit.migrates and advisory.undecided(audit.before) == ()
        since = f", as {audit.before.version} does" if already else ""
        because = " and ".join(condition.says for condition in advisory.conditions)
        message = f"{sentence} vLLM {audit.after.version} does that{since} (affected: {advisory.window}), and here "
        message += f"{because}. {advisory.way_out}"
        safe = all(restores(audit, name, value) for name, value in advisory.escape.items())
        said = ", ".join(f"{name}={value}" for name, value in advisory.escape.items())
        fix = audit.fix(f"Set {said}", safe, **advisory.escape) if advisory.escape else None
        yield rule.finding(audit, advisory.severity, advisory.setting, message, fix, advisory.confirm)

    rule = Rule(advisory.name, advisory.layer, check)
    return rule
