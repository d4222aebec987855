"""The releases of a framework that a config may be written for, by its keys, the vLLM release and the project's pins.

A config does not name its framework's release. A dialect lists what tells it:

    package: {names: [trl], repositories: [huggingface/trl]}            # how a file of pins spells it
    release:
      oldest: 0.14.0                    # the first with what is read here
      fields:                           # a release that does not have a key stops at it
        vllm_mode: {since: 0.18.0}
        vllm_device: {before: 0.18.0}
        max_prompt_length: {before: 0.28.0, if: call != RLOO}
      fields if: call != OnlineDPO      # of the configs that have these fields
      by keys:                          # all that hold are true of the release; one that leaves none is passed over
        - {if: "@logprobs_mode is set", since: 0.7.0, because: rollout.logprobs_mode exists since 0.7.0}
      runs with vllm:                   # other releases do not start, and a pin of one is refused
        - {if: vllm >= 0.12.0, since: 0.27.0, because: TRL up to 0.26 does not import with vLLM 0.12 or later}
      admits vllm: {0.27.0: 0.12.0, 1.0.0: 0.17.1}        # the newest that it asks for, from a release on: taken
      admits by: the vllm extra of TRL                    # what asks for it, and no more
      of: TRL                           # the framework whose releases these are, if it is another one; with it
      package: {names: [trl]}           # how that one is spelt, and
      carried: {0.8.0: 0.16.0}          # which of its releases comes with this one's, from a release on
      by vllm:                          # taken as far as the keys do not contradict it
        - {if: "vllm >= 0.18.0", since: 0.9.0, because: verl for vLLM 0.18.0 and later is 0.9.0 or newer}

The source of the framework, if it lies around the config, decides; then a pin inside the span. If no release is left, a
key and the vLLM exclude each other: what is said is then said of the later release.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.condition import Truth
from rlaudit.configs.framework_source.release_here import ReleaseHere
from rlaudit.settings.rollout_config import FrameworkReleases, RefusedPin
from rlaudit.unknown import Unknown

OLDEST, NEWEST = Version("0"), Version("100000")
Entry = Mapping[str, Any]
# Whether a condition holds, by its text.
Holds = Callable[[str | None], Truth]


@dataclass(frozen=True)
class Span:
    """Releases from `first` on, and before `end`."""

    first: Version = OLDEST
    end: Version = NEWEST
    # What tells the oldest, in a sentence.
    lower: str = ""
    # What tells the newest, in a sentence.
    upper: str = ""
    # The oldest that starts with the vLLM, if it is older than the first that admits it.
    starts: Version | None = None
    # The pin of a release that has every key and does not start with the vLLM.
    refused: RefusedPin | None = None
    # The pin of a release that is not taken, in a sentence.
    unused: str = ""
    # Of a copy: the releases that run with the vLLM.
    published: "Span | None" = None

    @property
    def is_empty(self) -> bool:
        """Whether no release is left."""
        return self.first >= self.end

    def holds(self, release: Version) -> bool:
        """Return whether a release is one of them."""
        return self.first <= Version(release.base_version) < self.end

    def compared(self, sign: str, other: Version, title: str) -> Truth:
        """Return whether every release of the span compares so; Unknown if only some do."""
        if sign in {">=", "<"}:
            truth = True if self.first >= other else False if self.end <= other else None
            if truth is None:
                return Unknown(f"nothing here says whether {title} is {other} or later (pin {title})")
            return truth is (sign == ">=")
        raise ValueError(f"a release is compared by >= and <, not {sign}")

    @property
    def _reasons(self) -> str:
        return "; ".join(dict.fromkeys(reason for reason in (self.lower, self.upper) if reason))

    @property
    def releases(self) -> FrameworkReleases | None:
        """The span as reports show it; None if nothing narrows it, or no release is left."""
        if self.is_empty or (self.first, self.end) == (OLDEST, NEWEST):
            return None
        return FrameworkReleases(self.first, None if self.end == NEWEST else self.end, self.lower, self.upper)

    def shown(self, title: str) -> str:
        """Return the span in words."""
        if self.is_empty:
            words = f"no {title} release has all of these keys and runs with this vLLM"
        else:
            before = "" if self.end == NEWEST else f", before {self.end}"
            words = f"{title} {self.first} or later{before}"
        return f"{words} ({self._reasons})" if self._reasons else words

    def narrowed(self, entry: Entry) -> "Span":
        """Return the part of the span that one entry leaves."""
        because, span = entry["because"], self
        if "since" in entry and (first := Version(str(entry["since"]))) > self.first:
            span = replace(span, first=first, lower=because)
        if "before" in entry and (end := Version(str(entry["before"]))) < self.end:
            span = replace(span, end=end, upper=because)
        return span

    def within(self, other: "Span") -> "Span":
        """Return the releases of both."""
        lower, upper = max(self, other, key=lambda span: span.first), min(self, other, key=lambda span: span.end)
        return Span(lower.first, upper.end, lower.lower, upper.upper, lower.starts)

    def lacks(self, field: Entry) -> bool:
        """Return whether no release of the span has a field any more."""
        return "before" in field and self.first >= Version(str(field["before"]))

    def lacks_for_certain(self, field: Entry) -> bool:
        """Return whether, besides, no release that starts with the vLLM has the field."""
        return self.lacks(field) and (self.starts or self.first) >= Version(str(field["before"]))


def span_of(
    declared: Entry, title: str, vllm: Version, holds: Holds, is_written: Callable[[str], bool],
    release: ReleaseHere | None, is_copy: bool, pins_vllm: bool,
) -> Span:  # fmt: skip
    """Return the releases that a config may be of.

    declared: the dialect's `release`. title: the framework's. holds: whether a condition holds. is_written: whether the
    config has a key. release: that of the framework's source or of the pin. is_copy: whether the framework's source
    lies around the config; vLLM's release then decides nothing of it. pins_vllm: whether the user runs
    this vLLM with it.
    """
    takes = Span(Version(str(declared["oldest"]))) if "oldest" in declared else Span()
    takes = _narrowed(_having(takes, declared, holds, is_written), declared.get("by keys", ()), holds)
    runs = Span()
    for entry in declared.get("runs with vllm", ()):
        runs = runs.narrowed(entry) if holds(entry["if"]) is True else runs
    admitting, by_vllm = _admitting(runs, declared, vllm), declared.get("by vllm", ())
    if is_copy:
        published = _narrowed(admitting, by_vllm, holds)
        return replace(takes if release is None else _only(release), published=published)
    span = _narrowed(takes.within(admitting), by_vllm, holds)
    if release is None:
        return span
    pin, read_as = f"{release.pinned_at} pins {title} {release.version}", f"it is read as {span.shown(title)}"
    if not takes.holds(release.version):
        return replace(span, unused=f"{pin}, which does not have what this config writes: {read_as}")
    if not runs.holds(release.version):
        why = runs.upper if Version(release.version.base_version) >= runs.first else runs.lower
        return replace(span, refused=RefusedPin(release.pinned_at, f"pins {title} {release.version}: {why}"))
    # A pin of a release that starts with this vLLM, or stands beside its pin, outweighs what the vLLM only suggests.
    if "runs with vllm" in declared or pins_vllm or span.holds(release.version):
        return _only(release)
    return replace(span, unused=f"{pin}, which does not run with vLLM {vllm}: {read_as}")


def written_fields(declared: Entry, holds: Holds, is_written: Callable[[str], bool]) -> Iterator[str]:
    """Return the fields of a dialect's `release` that a config writes."""
    if holds(declared.get("fields if")) is not True:
        return
    for name, field in declared.get("fields", {}).items():
        if is_written(name) and holds(field.get("if")) is True:
            yield name


def _having(span: Span, declared: Entry, holds: Holds, is_written: Callable[[str], bool]) -> Span:
    """Return the releases of a span that have every written field."""
    for name in written_fields(declared, holds, is_written):
        for bound, word in (("since", "is there since"), ("before", "is gone from")):
            if bound in (field := declared["fields"][name]):
                ends = f"{name} {word} {field[bound]}" + " on" * (bound == "before")
                span = span.narrowed({bound: field[bound], "because": ends})
    return span


def _admitting(runs: Span, declared: Entry, vllm: Version) -> Span:
    """Return the releases of `runs` that admit this vLLM or a newer one."""
    table = {Version(str(release)): Version(str(newest)) for release, newest in declared.get("admits vllm", {}).items()}
    if not table or runs.first == OLDEST or runs.first < min(table):
        return runs
    first = next((release for release, newest in table.items() if newest >= vllm), None)
    because = f"{declared['admits by']} {first} and later allows vLLM {vllm}"
    if first is None:
        first = max(table)
        because = (
            f"{declared['admits by']} allows vLLM {vllm} in no release that was read; {first} is the newest of them"
        )
    return replace(runs, first=first, lower=because, starts=runs.first) if first > runs.first else runs


def _narrowed(span: Span, entries: Iterable[Entry], holds: Holds) -> Span:
    """Return the span after every entry that holds. An entry that leaves nothing is passed over, with its reason."""
    for entry in entries:
        if holds(entry["if"]) is True:
            narrowed = span.narrowed(entry)
            span = span if narrowed.is_empty else narrowed
    return span


def carried(table: Mapping[str, str], release: ReleaseHere, title: str) -> ReleaseHere | None:
    """Return the release of the carried framework, as a pin: it can be moved. None if none is known."""
    older = [version for since, version in table.items() if Version(since) <= release.version]
    pinned_at = release.pinned_at or f"{title} {release.version}, whose source is here,"
    return ReleaseHere(Version(older[-1]), pinned_at) if older else None


def _only(release: ReleaseHere) -> Span:
    """Return a span of one release."""
    version = Version(release.version.base_version)
    end = Version(f"{version.major}.{version.minor}.{version.micro + 1}.dev0")
    return Span(version, end, release.because, release.because)
