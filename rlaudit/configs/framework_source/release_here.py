"""The release of a framework that a config is run with: from the command line, else of its source, else pinned."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.source import Source
from rlaudit.vllm.pins.files import pinned_around
from rlaudit.vllm.pins.pin import Package, requirements

# The option that gives a release, and the place of such a pin.
OPTION = "--framework"


@dataclass(frozen=True)
class ReleaseHere:
    """The release of a framework that lies or is pinned around a config. A pin may move together with vLLM's."""

    version: Version
    # `file:line` of the pin; empty if the source itself was found.
    pinned_at: str = ""

    @property
    def because(self) -> str:
        """Return what gives the release, for messages."""
        return f"{self.pinned_at} pins {self.version}" if self.pinned_at else f"its source says {self.version}"


def release_here(source: Source, package: Package, checkout: Checkout | None) -> ReleaseHere | None:
    """Return the release of the command line, else of the framework's source, else the one that the file itself
    installs, else that of the nearest file of pins that names exactly one.
    """
    for pin in requirements("\n".join(source.pins), package):
        if pin.version is not None:
            return ReleaseHere(pin.version, OPTION)
    if checkout is not None:
        return ReleaseHere(checkout.version) if checkout.version is not None else None
    return _installed(source.path, source.text, package) or _pinned(Path(source.path).absolute().parent, package)


@lru_cache(maxsize=256)
def _installed(path: str, text: str, package: Package) -> ReleaseHere | None:
    lines = {pin.version: pin.line for pin in requirements(text, package) if pin.version is not None}
    if len(lines) != 1:
        return None
    ((version, line),) = lines.items()
    return ReleaseHere(version, f"{path}:{line}")


def _pinned(folder: Path, package: Package) -> ReleaseHere | None:
    for pinned in pinned_around(folder, package):
        if len(pinned.releases) == 1:
            (pin,) = pinned.releases
            assert pin.version is not None
            return ReleaseHere(pin.version, f"{shown(str(pinned.path))}:{pin.line}")
    return None
