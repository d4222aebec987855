"""Lock files in TOML: uv.lock, poetry.lock, pdm.lock, pylock.toml (PEP 751)."""

import re
from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile, line_at, release

_PACKAGE = r'^name = "%s"\r?\n(?:marker[^\n]*\n)?version = "(?P<version>[^"]+)"'


def read(text: str, package: Package) -> Iterator[Pin]:
    """One for each resolution: a fork of uv's lock file holds several."""
    for match in re.finditer(_PACKAGE % package.name, text, re.M):
        yield Pin(match["version"], release(match["version"]), line_at(text, match.start("version")))


PIN_FILE = PinFile("lock file", 0, ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "pylock.*.toml"), read)
