"""Pipfile.lock, which is JSON."""

import re
from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of

_PACKAGE = r'"%s":\s*\{[^{}]*"version":\s*"(?P<version>==[^"]+)"'


def read(text: str, package: Package) -> Iterator[Pin]:
    """The locked release of each group."""
    for match in re.finditer(_PACKAGE % package.name, text):
        yield pin_of(match["version"], line_at(text, match.start("version")))


PIN_FILE = PinFile("Pipfile.lock", 1, ("Pipfile.lock",), read)
