"""Which release of TRL trains in axolotl: the one that axolotl's own release pins, else one that runs with the vLLM.

Pins were read in axolotl's tags 0.7.0 to 0.18.0 (requirements.txt, pyproject.toml).
"""

from collections.abc import Mapping

from packaging.version import Version

from rlaudit.configs.dialects.trl.release import TRL, Releases, both, that_run
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.release_here import ReleaseHere, release_here
from rlaudit.configs.source import Source
from rlaudit.pins.package import Package

AXOLOTL = Package(("axolotl",), ("axolotl-ai-cloud/axolotl", "OpenAccess-AI-Collective/axolotl"))
# axolotl, from a release on -> TRL.
_PINS: Mapping[str, str] = {
    "0.7.0": "0.15.0", "0.7.1": "0.15.1", "0.8.0": "0.16.0", "0.8.1": "0.16.1", "0.9.0": "0.17.0", "0.10.0": "0.18.1",
    "0.10.1": "0.18.2", "0.12.0": "0.21.0", "0.13.0": "0.25.0", "0.13.1": "0.25.1", "0.13.2": "0.27.0",
    "0.14.0": "0.27.1", "0.15.0": "0.29.0", "0.17.0": "1.5.1", "0.18.0": "1.8.0",
}  # fmt: skip


def trl_release(source: Source, checkout: Checkout | None, vllm: Version, *, colocated: bool) -> Releases:
    """The releases of TRL that may train; one where axolotl's is known, if it can."""
    here = release_here(source, AXOLOTL, checkout)
    pinned = _pinned_by(here) if here is not None else release_here(source, TRL, None)
    # Training by rewards came to axolotl with TRL 0.15.
    return both(Releases(Version("0.15"), None), that_run(vllm, colocated), pinned)


def _pinned_by(here: ReleaseHere) -> ReleaseHere | None:
    """As a pin, whether axolotl is pinned or lies there: TRL can be moved with it."""
    older = [trl for axolotl, trl in _PINS.items() if Version(axolotl) <= here.version]
    if not older:
        return None
    return ReleaseHere(Version(older[-1]), here.pinned_at or f"axolotl {here.version}, whose source is here,")
