"""The releases of a framework that a config may be written for, by its keys, the vLLM release and the project's pins.

A config does not name its framework's release. A dialect lists what tells it:

    package: {names: [trl], repositories: [huggingface/trl]}            # how a file of pins spells it
    release:
      oldest: 0.14.0                    # the first with what is read here
      fields:                           # a release that does not have a key stops at it
        vllm_mode: {since: 0.18.0}
        vllm_device: {before: 0.18.0, name: device}       # name: of the argument that it would be
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

from rlaudit.configs.framework_source.release_here import ReleaseHere
from rlaudit.dialects.condition import Truth
from rlaudit.settings.rollout_config import FrameworkReleases, RefusedPin
from rlaudit.unknown import Unknown

OLDEST, NEWEST = Version("0"), Version("100000")
Said = Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """Releases from `first` on, and before `end`."""

    first: Version = OLDEST
    end: Version = NEWEST
    # What tells the oldest, and what the newest, in sentences.
    lower: str = ""
    upper: str = ""
    # The oldest that starts with the vLLM, if it is older than the first that asks for it.
    starts: Version | None = None
    # The pin of a release that has every key and does not start with the vLLM.
    refused: RefusedPin | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no release is left."""
        return self.first >= self.end

    def holds(self, release: Version) -> bool:
        """Return whether a release is one of them."""
        return self.first <= Version(release.base_version) < self.end

    def compared(self, sign: str, other: Version, title: str) -> Truth:
        """Return whether the release compares so; Unknown if releases on both sides are possible."""
        if sign in {">=", "<"}:
            truth = True if self.first >= other else False if self.end <= other else None
            if truth is None:
                return Unknown(f"it depends on whether {title} is {other} or later; {self.why}")
            return truth is (sign == ">=")
        raise ValueError(f"a release is compared by >= and <, not {sign}")

    @property
    def why(self) -> str:
        """What tells the release, or that nothing does."""
        return self._reasons or "nothing in this config tells its release"

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

    def narrowed(self, said: Said) -> "Span":
        """Return the part of the span that one entry leaves."""
        because, span = said["because"], self
        if "since" in said and (first := Version(str(said["since"]))) > self.first:
            span = replace(span, first=first, lower=because)
        if "before" in said and (end := Version(str(said["before"]))) < self.end:
            span = replace(span, end=end, upper=because)
        return span

    def within(self, other: "Span") -> "Span":
        """Return the releases of both."""
        lower, upper = max(self, other, key=lambda one: one.first), min(self, other, key=lambda one: one.end)
        return Span(lower.first, upper.end, lower.lower, upper.upper, lower.starts)

    def lacks(self, field: Said) -> bool:
        """Return whether no release of the span has a field any more."""
        return "before" in field and self.first >= Version(str(field["before"]))

    def lacks_for_certain(self, field: Said) -> bool:
        """Return whether no release that starts with the vLLM has it, either."""
        return self.lacks(field) and (self.starts or self.first) >= Version(str(field["before"]))


def span_of(
    said: Said, title: str, vllm: Version, holds: Callable[[str | None], Truth], is_written: Callable[[str], bool],
    here: ReleaseHere | None, is_copy: bool,
) -> Span:  # fmt: skip
    """Return the releases that a config may be of.

    said: the dialect's `release`. title: the framework's. holds: how a condition stands. is_written: whether the config
    has a key. here: the release of the framework's source or of the pin. is_copy: whether the framework's source lies
    around the config, which vLLM's release then says nothing of.
    """
    takes = Span(Version(str(said["oldest"]))) if "oldest" in said else Span()
    takes = _told(_having(takes, said, holds, is_written), said.get("by keys", ()), holds)
    if is_copy:
        return takes if here is None else _only(here)
    runs = Span()
    for entry in said.get("runs with vllm", ()):
        runs = runs.narrowed(entry) if holds(entry["if"]) is True else runs
    span = _told(takes.within(_admitting(runs, said, vllm)), said.get("by vllm", ()), holds)
    if here is None:
        return span
    if not takes.holds(here.version):
        return span
    if not runs.holds(here.version):
        why = runs.upper if Version(here.version.base_version) >= runs.first else runs.lower
        return replace(span, refused=RefusedPin(here.pinned_at, f"pins {title} {here.version}: {why}"))
    # What vLLM only suggests is no match for a pin of a release that starts with it.
    return _only(here) if "runs with vllm" in said or span.holds(here.version) else span


def written_fields(
    said: Said, holds: Callable[[str | None], Truth], is_written: Callable[[str], bool]
) -> Iterator[str]:
    """Return the fields of a dialect's `release` that a config writes."""
    if holds(said.get("fields if")) is not True:
        return
    for name, field in said.get("fields", {}).items():
        if is_written(name) and holds(field.get("if")) is True:
            yield name


def _having(span: Span, said: Said, holds: Callable[[str | None], Truth], is_written: Callable[[str], bool]) -> Span:
    """Return the releases of a span that have every field that is written."""
    for name in written_fields(said, holds, is_written):
        for bound, word in (("since", "is there since"), ("before", "is gone from")):
            if bound in (field := said["fields"][name]):
                ends = f"{name} {word} {field[bound]}" + " on" * (bound == "before")
                span = span.narrowed({bound: field[bound], "because": ends})
    return span


def _admitting(runs: Span, said: Said, vllm: Version) -> Span:
    """Return the releases that ask for a vLLM which is this one or newer, of those that run with it."""
    table = {Version(str(release)): Version(str(newest)) for release, newest in said.get("admits vllm", {}).items()}
    if not table or runs.first == OLDEST or runs.first < min(table):
        return runs
    first = next((release for release, newest in table.items() if newest >= vllm), None)
    because = f"{said['admits by']} admits vLLM {vllm} from {first} on"
    if first is None:
        first = max(table)
        because = f"{said['admits by']} admits vLLM {vllm} in no release that was read; this is the newest"
    return replace(runs, first=first, lower=because, starts=runs.first) if first > runs.first else runs


def _told(span: Span, entries: Iterable[Said], holds: Callable[[str | None], Truth]) -> Span:
    """Return the span after every entry that holds. One that leaves nothing is passed over, and so is its reason."""
    for entry in entries:
        if holds(entry["if"]) is True:
            narrowed = span.narrowed(entry)
            span = span if narrowed.is_empty else narrowed
    return span


def carried(said: Said, here: ReleaseHere | None, title: str) -> ReleaseHere | None:
    """Return the release that comes with the one that is here, as a pin: it can be moved. None if none is known."""
    table = {Version(str(release)): Version(str(with_it)) for release, with_it in said["carried"].items()}
    older = [with_it for release, with_it in table.items() if here is not None and release <= here.version]
    if here is None or not older:
        return None
    return ReleaseHere(older[-1], here.pinned_at or f"{title} {here.version}, whose source is here,")


def _only(here: ReleaseHere) -> Span:
    """Return a span of one release."""
    release = Version(here.version.base_version)
    end = Version(f"{release.major}.{release.minor}.{release.micro + 1}.dev0")
    return Span(release, end, here.because, here.because)
