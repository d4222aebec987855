"""The releases of a package on an index: versions, Pythons and upload times; and which build of a vLLM to install.

Reads the Simple API, as JSON (PEP 691, PEP 700) or HTML (PEP 503), so that any mirror will do. The index is read
directly because uv answers these questions only by failing; downloading is left to uv.
"""

import base64
import platform
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.parse_json import parse_json

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_SECONDS_TO_ANSWER = 20
# Widest wheel coverage first; the running interpreter's minor version goes before all of them.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
# The packages with which a release was tested may be uploaded a little after it (wheels of slower platforms, hotfixes).
_MARGIN = timedelta(days=2)


@dataclass(frozen=True)
class Wheel:
    """One file of a release."""

    filename: str
    requires_python: str | None = None
    # An ISO 8601 time; None if the index states none.
    uploaded: str | None = None
    url: str = ""


@dataclass(frozen=True)
class Release:
    """One version of a package and its wheels for this kind of machine."""

    version: Version
    wheels: tuple[Wheel, ...]

    @property
    def uploaded(self) -> str | None:
        """The time of its first file."""
        return min((wheel.uploaded for wheel in self.wheels if wheel.uploaded), default=None)

    def runs_on(self, python_minor: str) -> bool:
        """Return whether a wheel can be installed on this Python, such as `3.11`."""
        return self.wheel_for(python_minor) is not None

    def wheel_for(self, python_minor: str) -> Wheel | None:
        """Return the wheel that an installer takes on this Python, its last build; None without one."""
        fitting = [wheel for wheel in self.wheels if _fits(wheel, python_minor)]
        return max(fitting, key=lambda wheel: parse_wheel_filename(wheel.filename)[2], default=None)


@dataclass(frozen=True)
class ChosenRelease:
    """The release to install."""

    distribution: str
    version: Version
    python: str
    # The day as of which to resolve its dependencies; None if the index states no dates.
    as_of: str | None

    @property
    def requirement(self) -> str:
        """The requirement to install."""
        return f"{self.distribution}=={self.version}"


def releases(package: str, sources: PackageSources) -> dict[Version, Release]:
    """Return every release with a wheel for this machine, on the main index and the extra ones.

    It is empty for a package that no index has. Raises NotFinished, naming the package, if no index answers.
    """
    files: list[Wheel] = []
    failures: list[str] = []
    indexes = () if sources.no_index else (sources.index, *sources.extra_indexes)
    for index in indexes:
        try:
            files += _files(f"{index.rstrip('/')}/{canonicalize_name(package)}/", sources.certificates)
        except OSError as error:
            failures.append(f"{_without_secret(index)}: {_reason(error)}")
    if not files and failures:
        raise NotFinished(
            f"package {package} could not be had: {failures[0]}",
            "Check the network and the index of your pip or uv configuration, or give --python VERSION=COMMAND.",
        )
    return _by_version(files, platform.machine())


def choose_release(spec: EnvironmentSpec, sources: PackageSources) -> ChosenRelease:
    """Return the build of `spec.version` to install.

    CPU builds are re-published as post releases of the same vLLM (0.8.5.post2 holds 0.8.5); the result is the last one.
    Raises UsageError, naming the nearest versions, if the index does not have the release or no Python fits it.
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
    """Return the versions around `wanted`, without post releases, which only repackage others."""
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
    """Return the day to resolve dependencies for: that of vLLM's release, not of the CPU build's."""
    uploaded = release.uploaded
    distribution = spec.holds.distributions["cuda"]
    if spec.distribution != distribution:
        upstream = releases(distribution, sources).get(_without_post(release.version))
        uploaded = (upstream.uploaded if upstream else None) or uploaded
    return str(date.fromisoformat(uploaded[:10]) + _MARGIN) if uploaded else None


def _by_version(files: Iterable[Wheel], machine: str) -> dict[Version, Release]:
    grouped: dict[Version, list[Wheel]] = {}
    for file in files:
        try:
            _name, version, _build, tags = parse_wheel_filename(file.filename)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        if any(tag.platform == "any" or tag.platform.endswith(machine) for tag in tags):
            grouped.setdefault(version, []).append(file)
    return {version: Release(version, tuple(wheels)) for version, wheels in sorted(grouped.items())}


def _fits(wheel: Wheel, python_minor: str) -> bool:
    major, minor = (int(part) for part in python_minor.split("."))
    if wheel.requires_python:
        try:
            # Any patch level will do: `>=3.10` and `<3.13` decide by the minor version.
            if not SpecifierSet(wheel.requires_python).contains(f"{python_minor}.5"):
                return False
        except InvalidSpecifier:
            pass
    for tag in parse_wheel_filename(wheel.filename)[3]:
        digits = tag.interpreter.lstrip("cpy")
        if tag.interpreter in {f"cp{major}{minor}", f"py{major}", f"py{major}{minor}"}:
            return True
        if tag.abi == "abi3" and digits.startswith(str(major)) and int(digits[1:] or 0) <= minor:
            return True
    return False


def open_address(address: str, certificates: str | None, headers: Mapping[str, str]) -> Any:
    """Return the open response to a request, with the credentials in the address. Raises OSError."""
    parts = urlsplit(address)
    all_headers = {"User-Agent": "rlaudit", **headers}
    if parts.username:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        all_headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
        host = parts.hostname or ""
        address = urlunsplit(parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host))
    context = ssl.create_default_context()
    if certificates and Path(certificates).is_file():
        context.load_verify_locations(cafile=certificates)
    request = urllib.request.Request(address, headers=all_headers)
    return urllib.request.urlopen(request, timeout=_SECONDS_TO_ANSWER, context=context)


def _files(address: str, certificates: str | None) -> list[Wheel]:
    parts = urlsplit(address)
    if parts.scheme == "file":
        page = Path(unquote(parts.path)) / "index.html"
        return _from_html(page.read_text(encoding="utf-8"), address) if page.exists() else []
    try:
        with open_address(address, certificates, {"Accept": _ACCEPT}) as answer:
            body = answer.read().decode("utf-8")
            kind = answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        if error.code in {404, 410}:
            return []
        raise
    return _from_json(parse_json(body), address) if kind.endswith("json") else _from_html(body, address)


def _from_json(page: Any, address: str) -> list[Wheel]:
    return [
        Wheel(file["filename"], file.get("requires-python"), file.get("upload-time"), urljoin(address, file["url"]))
        for file in page.get("files", [])
        if not file.get("yanked")
    ]


def _from_html(page: str, address: str) -> list[Wheel]:
    links = _Links(address)
    links.feed(page)
    return links.wheels


class _Links(HTMLParser):
    """Collects the anchors of a Simple API page. Some indexes add `data-upload-time` to the HTML form too."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.wheels: list[Wheel] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the file of an anchor."""
        values = dict(attrs)
        if tag == "a" and "data-yanked" not in values:
            url = urldefrag(urljoin(self.address, values.get("href") or "")).url
            filename = unquote(urlsplit(url).path.rsplit("/", 1)[-1])
            self.wheels.append(Wheel(filename, values.get("data-requires-python"), values.get("data-upload-time"), url))


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error)


def _without_secret(address: str) -> str:
    return urlsplit(address).hostname or address
