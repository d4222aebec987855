"""Chooses the published build of a vLLM release, and the Python to run it with."""

import sys
from dataclasses import dataclass
from datetime import date, timedelta

from packaging.version import Version

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.package_index import Release, releases
from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.errors import UsageError

# Widest wheel coverage first; the running interpreter's own minor goes before all of them.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
# What a release was tested with may have been uploaded a little after it (wheels of slower platforms,
# hotfixes).
_MARGIN = timedelta(days=2)


@dataclass(frozen=True)
class ChosenRelease:
    """What to install, on which Python, and as of which day (None: the index gives no dates)."""

    distribution: str
    version: Version
    python: str
    as_of: str | None

    @property
    def requirement(self) -> str:
        """The requirement to install."""
        return f"{self.distribution}=={self.version}"


def choose_release(spec: EnvironmentSpec, sources: PackageSources) -> ChosenRelease:
    """Return the build of `spec.version` to install.

    CPU builds are re-published as post releases of the same vLLM (0.8.5.post2 holds 0.8.5): the last one is
    taken.
    Raises UsageError, naming the nearest versions, when the index does not know the release or no Python fits
    it.
    """
    available = releases(spec.distribution, sources)
    wanted = Version(spec.version)
    candidates = [release for version, release in available.items() if _holds(version, wanted, spec.build == "cpu")]
    if not candidates:
        raise UsageError(
            f"{spec.distribution} {spec.version} is not on the index for this kind of machine",
            f"Nearest: {', '.join(nearest(wanted, list(available))) or 'none, the package is not there'}.",
        )
    for release in reversed(candidates):
        python = choose_python(release)
        if python:
            return ChosenRelease(spec.distribution, release.version, python, _as_of(spec, release, sources))
    raise UsageError(f"no Python of {', '.join(sorted(_PYTHONS))} runs the published wheels of vLLM {spec.version}")


def choose_python(release: Release) -> str | None:
    """Return the running Python's minor version if the release allows it, else the best supported one."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return next((python for python in (running, *_PYTHONS) if release.runs_on(python)), None)


def nearest(wanted: Version, available: list[Version], count: int = 4) -> list[str]:
    """Return the versions around `wanted`, without the post releases that only repackage one."""
    plain = sorted({_without_post(version) for version in available if not version.is_prerelease})
    before = [str(version) for version in plain if version < wanted][-count // 2 :]
    after = [str(version) for version in plain if version > wanted][: count // 2]
    return before + after


def _holds(published: Version, wanted: Version, repackaged: bool) -> bool:
    if published == wanted:
        return True
    return repackaged and wanted.post is None and not published.is_prerelease and _without_post(published) == wanted


def _without_post(version: Version) -> Version:
    return Version(version.base_version)


def _as_of(spec: EnvironmentSpec, release: Release, sources: PackageSources) -> str | None:
    """Return the day to resolve dependencies for: when vLLM itself came out, not when the CPU build was packaged."""
    uploaded = release.uploaded
    published_as = spec.holds.distributions["cuda"]
    if spec.distribution != published_as:
        upstream = releases(published_as, sources).get(_without_post(release.version))
        uploaded = (upstream.uploaded if upstream else None) or uploaded
    return str(date.fromisoformat(uploaded[:10]) + _MARGIN) if uploaded else None
