"""The indexes that the user has configured for pip, as arguments and variables of uv.

uv does not read pip's configuration, but clusters and company machines describe their mirrors there. Read here:
`index-url`, `extra-index-url`, `find-links`, `no-index` and `cert`, from pip's files and from `PIP_*` variables, in
pip's order of precedence. The user's variables for uv itself (`UV_*`) are passed on and win.
Source: pip documentation, "Configuration", https://pip.pypa.io/en/stable/topics/configuration/
"""

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlaudit.files.home import expanded

DEFAULT_INDEX = "https://pypi.org/simple"
_KEYS = ("index-url", "extra-index-url", "find-links", "no-index", "cert")


@dataclass(frozen=True)
class PackageSources:
    """Where packages come from."""

    index: str = DEFAULT_INDEX
    extra_indexes: tuple[str, ...] = ()
    # Folders and pages of wheels.
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    # The file of trusted certificates.
    certificates: str | None = None

    def uv_arguments(self) -> list[str]:
        """Return arguments of `uv pip`, without addresses: every user of a machine can read a command line."""
        return ["--no-index"] if self.no_index else []

    def uv_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return variables for uv, except those that the user has set."""
        variables: dict[str, str] = {}
        if not self.no_index and not {"UV_INDEX_URL", "UV_DEFAULT_INDEX"} & environ.keys():
            if self.index != DEFAULT_INDEX:
                variables["UV_DEFAULT_INDEX"] = self.index
            if self.extra_indexes and not {"UV_EXTRA_INDEX_URL", "UV_INDEX"} & environ.keys():
                variables["UV_INDEX"] = " ".join(self.extra_indexes)
                # pip takes the best match of all indexes; uv would stop at the first that has the package, which may be
                # a partial mirror.
                variables["UV_INDEX_STRATEGY"] = environ.get("UV_INDEX_STRATEGY", "unsafe-best-match")
        if self.find_links:
            variables["UV_FIND_LINKS"] = ",".join(_without_commas(place) for place in self.find_links)
        if self.certificates and "SSL_CERT_FILE" not in environ:
            variables["SSL_CERT_FILE"] = self.certificates
        return variables


def _without_commas(place: str) -> str:
    """Return a place for UV_FIND_LINKS, which is a list separated by commas."""
    if "," not in place:
        return place
    return place.replace(",", "%2C") if "://" in place else Path(place).absolute().as_uri().replace(",", "%2C")


def read_package_sources(environ: Mapping[str, str] | None = None) -> PackageSources:
    """Return the sources from pip's files (global, user, rlaudit's environment, PIP_CONFIG_FILE) and PIP_* variables.

    Later ones win. Unreadable files are skipped, as pip does.
    """
    environ = os.environ if environ is None else environ
    settings: dict[str, str] = {}
    for file in _configuration_files(environ):
        settings.update(_read(file))
    for key in _KEYS:
        value = environ.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            settings[key] = value
    index = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or settings.get("index-url")
    return PackageSources(
        index=(index or DEFAULT_INDEX).rstrip("/"),
        extra_indexes=_present(settings.get("extra-index-url", "")),
        find_links=_present(settings.get("find-links", "")),
        no_index=settings.get("no-index", "").lower() in {"1", "true", "yes", "on"},
        certificates=settings.get("cert"),
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
        # As pip does: VIRTUAL_ENV may be a checkout's.
        Path(sys.prefix) / "pip.conf",
    ]
    if named := environ.get("PIP_CONFIG_FILE"):
        files.append(Path(named))
    return files


def _read(file: Path) -> dict[str, str]:
    """Return the settings of a file; `[install]` wins over `[global]`."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
    sections = [section for section in ("global", "install") if parser.has_section(section)]
    return {key: value for section in sections for key, value in parser.items(section) if key in _KEYS and value}


def _present(value: str) -> tuple[str, ...]:
    """Return the places in order, without missing folders, at which pip only warns and uv stops."""
    kept: list[str] = []
    for place in value.split():
        local = place.removeprefix("file://") if place.startswith("file://") else place
        is_local = "://" not in local
        if place not in kept and (not is_local or Path(local).exists()):
            kept.append(place)
    return tuple(kept)
