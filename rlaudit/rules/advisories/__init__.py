"""Known defects of vLLM and of frameworks: one YAML file each.

To add one, imitate `rounded-processed-logprobs.yaml`: what it is about, its window (both edges, each as a release, a
line of its sources and what stands there), the conditions that must come together (`conditions.py` has those that
several need, and the forms of all others), the way out and how to confirm it. An advisory whose window was not seen in
the sources does not go in. `pytest tests/advisories` checks it against the catalogue of releases, and runs the examples
in its second document: `fires` is a config on which it speaks, in the form of `tests/simulated_audit.py`, with
`checkpoint` for what the model's config.json says; each of `silent`, laid over that, takes one condition away.

One of a framework says in `of` whose releases its window is of (the name of the package), and in `metrics` which logged
curves mean something else with it: then `curves` says it of a log that has one, and no rule does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from packaging.version import Version

from rlaudit.rules.advisories.advisory import VLLM, Advisory, read_advisory


@lru_cache(maxsize=1)
def known_advisories() -> Mapping[str, Advisory]:
    """Return every advisory, by name."""
    return {path.stem: read_advisory(path) for path in sorted(Path(__file__).parent.glob("*.yaml"))}


def defects_of(package: str) -> Mapping[str, Advisory]:
    """Return the advisories of vLLM, or of a framework."""
    return {name: advisory for name, advisory in known_advisories().items() if advisory.of == package}


def in_some_releases(keys: Iterable[str]) -> list[str]:
    """Return a line for each key of a training log that means something else in some releases of a framework."""
    return [
        f"{key}, if it is of {advisory.affected}: {advisory.sentence} (rlaudit explain {advisory.name})"
        for key in keys
        for advisory in known_advisories().values()
        if any(f"/{key}".endswith(f"/{metric}") for metric in advisory.metrics)
    ]


@cache
def has_rule(name: str) -> bool:
    """Return whether a rule of the same name reports an advisory's defect, since conditions do not suffice."""
    return find_spec(f"rlaudit.rules.{name.replace('-', '_')}") is not None


@dataclass(frozen=True)
class Crossed:
    """The known defects of two releases, by name."""

    # Only the newer release has them.
    entered: Mapping[str, Advisory]
    # Only the older release has them.
    left: Mapping[str, Advisory]
    # Both releases have them.
    still_open: Mapping[str, Advisory]


def crossed(base: Version, to: Version) -> Crossed:
    """Return vLLM's defects of either release, without those that began and ended in between."""

    def those(before: bool, after: bool) -> dict[str, Advisory]:
        return {
            name: advisory
            for name, advisory in defects_of(VLLM).items()
            if (advisory.window.holds(base), advisory.window.holds(to)) == (before, after)
        }

    return Crossed(entered=those(False, True), left=those(True, False), still_open=those(True, True))
