"""Known defects of vLLM: one a file.

To add one, imitate `rounded_processed_logprobs.py`: bind ADVISORY with its window (both edges, each as a line of the
sources of the releases at both sides), the conditions that must come together (`rlaudit/inspection/conditions.py` has
those that several need), the way out and how to confirm it. An advisory whose window was not seen in the sources does
not go in. `pytest tests/advisories` checks it against the catalogue of releases, and requires a case in
`tests/advisories/met.yaml`: a config on which it fires, and what takes each condition away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

from packaging.version import Version

from rlaudit.discover import Offers, discover
from rlaudit.inspection.advisory import Advisory, Seen

# Edges that several windows share.
BEFORE_LAYERWISE_RELOAD = Seen(
    "0.15.1",
    "vllm/v1/worker/gpu_model_runner.py:4230",
    "there is no layerwise reload: weights are loaded in place",
)
TRITON_EXPERTS = Seen(
    "0.19.1",
    "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:142",
    "Triton is the default, which keeps the checkpoint's order",
)


@lru_cache(maxsize=1)
def known_advisories() -> Offers[Advisory]:
    """Return every advisory, by name."""
    from rlaudit import advisories

    return discover(advisories, "ADVISORY", Advisory)


def sentence(name: str) -> str:
    """Return the first sentence of an advisory's documentation."""
    return " ".join(known_advisories().documentation(name).partition("\n\n")[0].split())


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
