"""Which releases of a framework a config may be of: what its keys, the vLLM release and the project's pins leave.

A config does not name its framework's release. A dialect lists what tells it:

    release:
      package: {names: [verl], repositories: [verl-project/verl]}     # how a file of pins spells it
      by keys:                                                        # all that hold are true of the release
        - {if: "@logprobs_mode is set", since: 0.7.0, because: rollout.logprobs_mode exists since 0.7.0}
      by vllm:                                                        # taken as far as the keys do not contradict it
        - {if: "vllm >= 0.18.0", since: 0.9.0, because: verl for vLLM 0.18.0 and later is 0.9.0 or newer}

The source of the framework, if it lies around the config, decides; then a pin inside the span.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.framework_source.release_here import ReleaseHere
from rlaudit.configs.rollout_config import FrameworkReleases
from rlaudit.configs.syntax.node import Unknown
from rlaudit.dialects.condition import Truth

OLDEST, NEWEST = Version("0"), Version("100000")


@dataclass(frozen=True)
class Span:
    """Releases from `first` on, and before `end`."""

    first: Version = OLDEST
    end: Version = NEWEST
    # What tells it, in sentences.
    because: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no release is left."""
        return self.first >= self.end

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
        return "; ".join(self.because) or "nothing in this config tells its release"

    @property
    def releases(self) -> FrameworkReleases | None:
        """The span as reports show it; None if nothing narrows it."""
        if (self.first, self.end) == (OLDEST, NEWEST):
            return None
        why = self.because[-1] if self.because else ""
        return FrameworkReleases(self.first, None if self.end == NEWEST else self.end, why, why)

    def narrowed(self, said: Mapping[str, Any]) -> "Span":
        """Return the part of the span that one entry leaves."""
        first = max(self.first, Version(str(said["since"]))) if "since" in said else self.first
        end = min(self.end, Version(str(said["before"]))) if "before" in said else self.end
        return Span(first, end, (*self.because, said["because"]))


def span_of(said: Mapping[str, Any], holds: Callable[[str], Truth], here: ReleaseHere | None, is_copy: bool) -> Span:
    """Return the releases that a config may be of.

    said: the dialect's `release`. holds: how a condition stands. here: the release of the framework's source or of the
    pin. is_copy: whether the framework's source lies around the config, which vLLM's release then says nothing of.
    """
    span = _told(Span(), said.get("by keys", ()), holds)
    if is_copy:
        if here is None:
            return span
        release = Version(here.version.base_version)
        return Span(release, _next(release), (here.because,))
    for entry in said.get("by vllm", ()):
        if holds(entry["if"]) is True:
            narrowed = span.narrowed(entry)
            if not narrowed.is_empty:
                span = narrowed if (narrowed.first, narrowed.end) != (span.first, span.end) else span
    if here is not None and span.first <= Version(here.version.base_version) < span.end:
        release = Version(here.version.base_version)
        span = Span(release, _next(release), (here.because,))
    return span


def _told(span: Span, entries: Iterable[Mapping[str, Any]], holds: Callable[[str], Truth]) -> Span:
    """Return the span after every entry that holds. One that leaves nothing is passed over, and so is its reason."""
    for entry in entries:
        if holds(entry["if"]) is True:
            narrowed = span.narrowed(entry)
            span = span if narrowed.is_empty else narrowed
    return span


def _next(release: Version) -> Version:
    """Return the release that comes after one, as far as a span needs it."""
    return Version(f"{release.major}.{release.minor}.{release.micro + 1}.dev0")
