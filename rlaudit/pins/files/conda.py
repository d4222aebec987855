"""Environments of conda, with what pip installs into them."""

import re
from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of, requirements
from rlaudit.pins.without_comments import without_comments

# conda's own spelling has one sign of equality.
_CONDA = r"^[ \t]*-[ \t]*(?:[\w-]+::)?%s=(?P<version>\d[\w.]*)"


def read(text: str, package: Package) -> Iterator[Pin]:
    """conda's packages, then pip's."""
    said = without_comments(text)
    for match in re.finditer(_CONDA % package.name, said, re.M):
        yield pin_of(f"=={match['version']}", line_at(said, match.start()))
    yield from requirements(said, package)


PIN_FILE = PinFile("conda environment", 3, ("environment*.yml", "environment*.yaml", "conda*.y*ml"), read)
