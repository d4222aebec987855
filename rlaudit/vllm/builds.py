"""What the published builds of a vLLM release hold: compiled modules, the torch they pin, the CUDA of that torch.

data/builds.json, made by `python -m extract_catalogue --builds` in .ci from the x86-64 Linux wheels on PyPI.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from packaging.version import Version

from rlaudit.vllm.facts import DATA

FILE = "builds.json"
# (release, build) -> the glibc that a wheel needs although its name asks for less: the symbol __isoc23_strtol of its
# compiled module is GLIBC_2.38. The other CPU builds up to 0.33.0 run with 2.36 (examples/releases, 2026-11-28).
_NEEDS_GLIBC = {("0.11.2", "cpu"): "2.38"}
_TAG = re.compile(r"manylinux_(\d+)_(\d+)")


@dataclass(frozen=True)
class PublishedBuild:
    """One build of one release."""

    # The file's name.
    wheel: str
    # The compiled files directly under `vllm/`.
    modules: tuple[str, ...]
    # Those of them whose operators the release's own platform code imports, as `vllm._C`.
    imports: tuple[str, ...]
    # The version that it pins.
    torch: str
    # The CUDA of that torch as PyPI has it (`12.8`); empty for a CPU build.
    cuda: str
    # The oldest glibc that it runs with (`2.28`); empty if the wheel's name does not say.
    glibc: str = ""


def published_build(version: str, build: Literal["cuda", "cpu"]) -> PublishedBuild | None:
    """Return a release's build; None if the release has none, or is not recorded."""
    entry = _data()["vllm"].get(str(Version(version)), {}).get(build)
    if entry is None:
        return None
    cuda = cuda_of_torch(entry["torch"]) or "" if build == "cuda" else ""
    tag = _TAG.search(entry["wheel"])
    glibc = _NEEDS_GLIBC.get((str(Version(version)), build)) or (f"{tag[1]}.{tag[2]}" if tag else "")
    return PublishedBuild(entry["wheel"], tuple(entry["modules"]), tuple(entry["imports"]), entry["torch"], cuda, glibc)


def cuda_of_torch(version: str) -> str | None:
    """Return the CUDA that a torch release on PyPI was built for, as `12.8`; None if the release is not recorded."""
    cuda: str | None = _data()["torch"].get(str(Version(Version(version).public)))
    return cuda


def recorded_versions() -> tuple[Version, ...]:
    """Return every release whose builds are recorded, oldest first."""
    return tuple(Version(version) for version in _data()["vllm"])


def released_for(build: Literal["cuda", "cpu"]) -> tuple[Version, ...]:
    """Return every release that is published for CUDA, or for processors, oldest first."""
    return tuple(version for version in recorded_versions() if published_build(str(version), build) is not None)


def recorded_torch() -> Mapping[Version, str]:
    """Return every torch release that is recorded, oldest first, with its CUDA."""
    return {Version(version): cuda for version, cuda in _data()["torch"].items()}


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DATA / FILE).read_text(encoding="utf-8"))
    return data
