"""Pipfile.lock, which is JSON."""

import re
from collections.abc import Iterator

from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of

_PACKAGE = re.compile(r'"vllm":\s*\{[^{}]*"version":\s*"(?P<version>==[^"]+)"')


def read(text: str) -> Iterator[Pin]:
    """The locked release of each group."""
    for match in _PACKAGE.finditer(text):
        yield pin_of(match["version"], line_at(text, match.start("version")))


PIN_FILE = PinFile("Pipfile.lock", 1, ("Pipfile.lock",), read)
