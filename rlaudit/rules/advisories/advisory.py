"""A known defect of vLLM or of a framework: the releases that have it, and what must come together for it.

In some releases a setting means something else than its documentation says. An advisory is the data on such a window:
both of its edges as lines of the released sources, the conditions, and the way out. It is reported like a rule's
finding, and only if the release that is moved to has the defect. The release of a framework is the one that the project
pins, or that of its source around the config.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from rlaudit.configs.dialects.condition import Truth
from rlaudit.layers import Layer
from rlaudit.rules.advisories.conditions import Condition, condition_of
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.moved_default import restores
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.unknown import Unknown

# libyaml reads an advisory in a third of a millisecond, PyYAML's own loader in three.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EDGES = ("before", "first", "last", "fixed")
_REQUIRED = {"about", "layer", "severity", "window", "conditions", "way out", "confirm"}
_KEYS = {*_REQUIRED, "setting", "of", "metrics", "threads", "unless", "escape"}
VLLM = "vllm"


@dataclass(frozen=True)
class Seen:
    """A place in a release's sources."""

    # `0.26.0`.
    release: str
    # `vllm/v1/sample/sampler.py:120`, or a file that the release lacks.
    at: str
    # The code in this place.
    says: str

    @cached_property
    def version(self) -> Version:
        """The release."""
        return Version(self.release)


@dataclass(frozen=True)
class Window:
    """The releases that have a defect, each edge seen from both sides."""

    # The first and the last release with it.
    first: Seen
    last: Seen
    # The last one without it, None if the oldest known has it.
    before: Seen | None = None
    # The first one without it again, None if the newest known has it.
    fixed: Seen | None = None

    def holds(self, version: Version) -> bool:
        """Return whether a release has the defect. One that is newer than all known has what the newest has."""
        return self.first.version <= version and (self.fixed is None or version < self.fixed.version)

    def among(self, oldest: Version, end: Version | None) -> bool | None:
        """Return whether all releases from one on and before another have the defect; None if only some do."""
        if self.holds(oldest) and (self.fixed is None or (end is not None and end <= self.fixed.version)):
            return True
        is_later = self.fixed is not None and self.fixed.version <= oldest
        return False if is_later or (end is not None and end <= self.first.version) else None

    def __str__(self) -> str:
        """`0.20.0 to 0.20.2`, `0.26.0`, `0.20.0 and later`."""
        if self.fixed is None:
            return f"{self.first.release} and later"
        first, last = self.first.release, self.last.release
        return first if first == last else f"{first} to {last}"


@dataclass(frozen=True)
class Advisory:
    """One defect."""

    name: str
    # One sentence, and after an empty line what happens.
    about: str
    layer: Layer
    # That of a finding for which every condition holds.
    severity: Severity
    window: Window
    conditions: tuple[Condition, ...]
    # What a finding points at.
    setting: str
    # A sentence.
    way_out: str
    # An experiment, or in words what shows it.
    confirm: str | Trial
    # The package whose releases have it.
    of: str = VLLM
    # The keys of logged curves that mean something else with it: `curves` speaks of it, and no rule.
    metrics: tuple[str, ...] = ()
    # Where it is discussed: `vllm#42043`.
    threads: tuple[str, ...] = ()
    # What makes it silent, if one is known to hold.
    workarounds: tuple[Condition, ...] = ()
    # Engine arguments that end it.
    escape: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The first sentence of `about`, in one line."""
        return " ".join(self.about.partition("\n\n")[0].split())

    @property
    def affected(self) -> str:
        """`0.20.0 to 0.20.2` of vLLM, `verl 0.6.0` of a framework."""
        return str(self.window) if self.of == VLLM else f"{self.of} {self.window}"

    def in_release(self, side: Side) -> Truth:
        """Return whether the release of one side of an audit has it."""
        if self.of == VLLM:
            return self.window.holds(side.version)
        config = side.config
        release = config.release_of(self.of)
        if release is not None:
            return self.window.holds(release.version)
        span = config.releases
        if span is not None and self.of in (span.of or config.framework, config.framework.replace("_", "-")):
            among = self.window.among(span.oldest, span.newest)
            if among is not None:
                return among
        return Unknown(f"{self.of}'s release is not known: pin it, or give --framework {self.of}==X")

    def undecided(self, side: Side) -> tuple[tuple[Condition, Unknown], ...] | None:
        """Return the conditions that one side of an audit leaves open; None if one is false or a workaround holds."""
        undecided = []
        for condition in (Condition(f"{self.of} has it", self.in_release), *self.conditions):
            truth = condition.holds(side)
            if isinstance(truth, Unknown):
                undecided.append((condition, truth))
            elif not truth:
                return None
        if any(workaround.holds(side) is True for workaround in self.workarounds):
            return None
        return tuple(undecided)


def read_advisory(path: Path) -> Advisory:
    """Return the advisory in the first document of a file, with the file's name. Raises ValueError if it is malformed.

    The second document has examples, which only the tests read.
    """
    try:
        return _advisory(path.stem, next(yaml.load_all(path.read_text(encoding="utf-8"), _LOADER)))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _advisory(name: str, written: Mapping[str, Any]) -> Advisory:
    _refuse_unknown_keys(written, _KEYS)
    if missing := _REQUIRED - set(written):
        raise ValueError(f"it has no {', '.join(sorted(missing))}")
    _refuse_unknown_keys(written["window"], _EDGES)
    return Advisory(
        name=name,
        about=written["about"].rstrip("\n"),
        layer=Layer(written["layer"]),
        severity=Severity(written["severity"]),
        window=Window(**{edge: _edge(edge, seen) for edge, seen in written["window"].items()}),
        conditions=tuple(map(condition_of, written["conditions"])),
        setting=written.get("setting", "framework"),
        way_out=written["way out"],
        confirm=_confirm(written["confirm"]),
        of=written.get("of", VLLM),
        metrics=tuple(written.get("metrics", ())),
        threads=tuple(written.get("threads", ())),
        workarounds=tuple(map(condition_of, written.get("unless", ()))),
        escape=written.get("escape", {}),
    )


def _confirm(written: Any) -> str | Trial:
    if isinstance(written, str):
        return written
    _refuse_unknown_keys(written, ("factors", "recipe", "look"))
    return Trial(tuple(written.get("factors", ())), written.get("recipe", ""), written.get("look", ""))


def _edge(edge: str, written: Any) -> Seen:
    if not isinstance(written, list) or len(written) != 3:
        raise ValueError(f"{edge} is not a release, a place in its sources and what stands there: {written}")
    return Seen(*written)


def _refuse_unknown_keys(written: Mapping[str, Any], keys: Iterable[str]) -> None:
    for key in written:
        if key not in keys:
            raise ValueError(f"it has no key {key}; {did_you_mean(key, keys, ', '.join(sorted(keys)))}")


def rule_of(advisory: Advisory) -> Rule:
    """Return the rule that reports an advisory."""

    def check(audit: Audit) -> Iterator[Finding]:
        """Yield a finding if every condition holds in the release after the move; none for a defect of curves."""
        if advisory.metrics or advisory.undecided(audit.after) != ():
            return
        because = " and ".join(condition.says for condition in advisory.conditions)
        release, action = f"vLLM {audit.after.version}", None
        if advisory.of != VLLM:
            here, fixed = audit.config.release_of(advisory.of), advisory.window.fixed
            release = f"{advisory.of} {here.version} ({here.because})" if here is not None else f"This {advisory.of}"
            action = Action(ActionKind.FRAMEWORK, f"{advisory.of} {fixed.release} or later") if fixed else None
        message = f"{advisory.sentence} {release} is among the affected releases ({advisory.window}), "
        message += f"and here {because}. {advisory.way_out}"
        safe = all(restores(audit, name, value) for name, value in advisory.escape.items())
        arguments = ", ".join(f"{name}={value}" for name, value in advisory.escape.items())
        fix = audit.fix(f"Set {arguments}", safe, **advisory.escape) if advisory.escape else None
        yield rule.finding(audit, advisory.severity, advisory.setting, message, fix, advisory.confirm, action=action)

    rule = Rule(advisory.name, advisory.layer, check)
    return rule
