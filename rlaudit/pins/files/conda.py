"""Environments of conda, with what pip installs into them."""

import re
from collections.abc import Iterator

from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of, requirements
from rlaudit.pins.without_comments import without_comments

# conda's own spelling has one sign of equality.
_CONDA = re.compile(r"^[ \t]*-[ \t]*(?:[\w-]+::)?vllm=(?P<version>\d[\w.]*)", re.M)


def read(text: str) -> Iterator[Pin]:
    """conda's packages, then pip's."""
    said = without_comments(text)
    for match in _CONDA.finditer(said):
        yield pin_of(f"=={match['version']}", line_at(said, match.start()))
    yield from requirements(said)


PIN_FILE = PinFile("conda environment", 3, ("environment*.yml", "environment*.yaml", "conda*.y*ml"), read)
