"""Shell scripts that install vLLM; only commands that install say something, since others print or compare."""

import re
from collections.abc import Iterator
from dataclasses import replace

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.pins.requirement import requirements
from rlaudit.pins.without_comments import without_comments

_INSTALLS = re.compile(r"\b(?:install|uv add)\b")


def read(text: str, package: Package) -> Iterator[Pin]:
    """A command may go on over several lines."""
    line = 1
    for command in re.split(r"(?<!\\)\n", without_comments(text)):
        if _INSTALLS.search(command):
            yield from (replace(pin, line=line + pin.line - 1) for pin in requirements(command, package))
        line += command.count("\n") + 1


PIN_FILE = PinFile("install script", 9, ("*install*.sh", "*setup*.sh"), read)
