"""Whether the C library of this machine loads a release's wheel, and which other release does as well."""

import platform
from typing import Literal

from packaging.version import Version

from rlaudit.vllm.builds import published_build, released_for
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import moved_and_decides

Build = Literal["cuda", "cpu"]


def glibc_here() -> str:
    """Return this machine's glibc, as `2.36`; empty if its C library is another one."""
    library, version = platform.libc_ver()
    return version if library == "glibc" else ""


def newer_glibc(version: str, build: Build, here: str) -> str:
    """Return the glibc that a wheel needs; empty if it runs with `here`, or if one of them is not known."""
    published = published_build(version, build)
    needed = published.glibc if published is not None else ""
    return needed if needed and here and Version(needed) > Version(here) else ""


def nearest_alike(version: str, build: Build, here: str, machine: Machine) -> Version | None:
    """Return the nearest release that runs with `here` and decides all that decides logprobs as this one does."""
    wanted, published = Version(version), released_for(build)
    for other in sorted(published, key=lambda other: abs(published.index(other) - published.index(wanted))):
        if other == wanted or newer_glibc(str(other), build, here):
            continue
        if not moved_and_decides(min(wanted, other), max(wanted, other), machine):
            return other
    return None
