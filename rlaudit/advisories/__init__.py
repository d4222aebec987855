"""Known defects of vLLM: one YAML file each.

To add one, imitate `rounded-processed-logprobs.yaml`: what it is about, its window (both edges, each as a release, a
line of its sources and what stands there), the conditions that must come together (`conditions.py` has those that
several need, and the forms of all others), the way out and how to confirm it. An advisory whose window was not seen in
the sources does not go in. `pytest tests/advisories` checks it against the catalogue of releases, and runs the examples
in its second document: `fires` is a config on which it speaks, in the form of `tests/simulated_audit.py`, with
`checkpoint` for what the model's config.json says; each of `silent`, laid over that, takes one condition away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from packaging.version import Version

from rlaudit.advisories.advisory import Advisory, read_advisory


@lru_cache(maxsize=1)
def known_advisories() -> Mapping[str, Advisory]:
    """Return every advisory, by name."""
    return {path.stem: read_advisory(path) for path in sorted(Path(__file__).parent.glob("*.yaml"))}


def has_rule(name: str) -> bool:
    """Return whether a rule of the same name reports an advisory's defect: it finds out more than conditions can."""
    return find_spec(f"rlaudit.rules.{name.replace('-', '_')}") is not None


@dataclass(frozen=True)
class Crossed:
    """What a move from one release to another does to the known defects, by name.

    entered: only the release that is moved to has it. left: only the one that is moved from. still_open: both.
    """

    entered: Mapping[str, Advisory]
    left: Mapping[str, Advisory]
    still_open: Mapping[str, Advisory]


def crossed(base: Version, to: Version) -> Crossed:
    """Return the defects that either release has. One that began and ended in between neither has, and is left out."""

    def those(before: bool, after: bool) -> dict[str, Advisory]:
        return {
            name: one
            for name, one in known_advisories().items()
            if (one.window.holds(base), one.window.holds(to)) == (before, after)
        }

    return Crossed(entered=those(False, True), left=those(True, False), still_open=those(True, True))
