"""The indexes a user has configured for pip, in words uv understands.

uv does not read pip's configuration, but clusters and company machines describe their mirrors there. Read
here: `index-url`, `extra-index-url`, `find-links`, `no-index` and `cert`, from pip's files and from `PIP_*`
variables, in pip's own order of precedence. What the user sets for uv itself (`UV_*`) passes through and
wins.
Source: pip documentation, "Configuration", https://pip.pypa.io/en/stable/topics/configuration/
"""

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlaudit.home import expanded

DEFAULT_INDEX = "https://pypi.org/simple"
_KEYS = ("index-url", "extra-index-url", "find-links", "no-index", "cert")


@dataclass(frozen=True)
class PackageSources:
    """Where packages come from: a main index, further ones, folders of wheels, certificates to trust."""

    index: str = DEFAULT_INDEX
    extra_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    certificates: str | None = None

    def uv_arguments(self) -> list[str]:
        """Return words for `uv pip`, without addresses: every user of a machine can read a command line."""
        return ["--no-index"] if self.no_index else []

    def uv_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return variables for uv: indexes, folders of wheels and certificates, unless the user has set uv's own."""
        variables: dict[str, str] = {}
        if not self.no_index and not {"UV_INDEX_URL", "UV_DEFAULT_INDEX"} & environ.keys():
            if self.index != DEFAULT_INDEX:
                variables["UV_DEFAULT_INDEX"] = self.index
            if self.extra_indexes and not {"UV_EXTRA_INDEX_URL", "UV_INDEX"} & environ.keys():
                variables["UV_INDEX"] = " ".join(self.extra_indexes)
                # pip looks at all indexes at once; uv would stop at the first that knows a name, which may be a
                # partial mirror.
                variables["UV_INDEX_STRATEGY"] = environ.get("UV_INDEX_STRATEGY", "unsafe-best-match")
        if self.find_links:
            variables["UV_FIND_LINKS"] = ",".join(_without_commas(place) for place in self.find_links)
        if self.certificates and "SSL_CERT_FILE" not in environ:
            variables["SSL_CERT_FILE"] = self.certificates
        return variables


def _without_commas(place: str) -> str:
    """Return a place for UV_FIND_LINKS, which is a list with commas."""
    if "," not in place:
        return place
    return place.replace(",", "%2C") if "://" in place else Path(place).absolute().as_uri().replace(",", "%2C")


def read_package_sources(environ: Mapping[str, str] | None = None) -> PackageSources:
    """Return the user's sources, from pip's files (global, user, virtual environment, PIP_CONFIG_FILE), then PIP_*
    variables.

    Files that cannot be read are left out, as pip does. A key given in a later place replaces the earlier
    one.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, str] = {}
    for file in _configuration_files(environ):
        found.update(_read(file))
    for key in _KEYS:
        value = environ.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            found[key] = value
    index = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or found.get("index-url")
    return PackageSources(
        index=(index or DEFAULT_INDEX).rstrip("/"),
        extra_indexes=_present(found.get("extra-index-url", "")),
        find_links=_present(found.get("find-links", "")),
        no_index=found.get("no-index", "").lower() in {"1", "true", "yes", "on"},
        certificates=found.get("cert"),
    )


def _configuration_files(environ: Mapping[str, str]) -> list[Path]:
    if environ.get("PIP_CONFIG_FILE") == os.devnull:
        return []
    home = expanded(environ.get("HOME", "~"))
    xdg_dirs = [Path(part) for part in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if part]
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        *(folder / "pip" / "pip.conf" for folder in xdg_dirs),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        user / "pip" / "pip.conf",
        Path(environ.get("VIRTUAL_ENV", sys.prefix)) / "pip.conf",
    ]
    if named := environ.get("PIP_CONFIG_FILE"):
        files.append(Path(named))
    return files


def _read(file: Path) -> dict[str, str]:
    """Read a file: `[install]` is more special than `[global]`, so it comes last."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            found.update({key: value for key, value in parser.items(section) if key in _KEYS and value})
    return found


def _present(value: str) -> tuple[str, ...]:
    """Return the places named, in order, without folders that are missing: pip only warns there, uv stops."""
    kept: list[str] = []
    for place in value.split():
        local = place.removeprefix("file://") if place.startswith("file://") else place
        is_local = "://" not in local
        if place not in kept and (not is_local or Path(local).exists()):
            kept.append(place)
    return tuple(kept)
