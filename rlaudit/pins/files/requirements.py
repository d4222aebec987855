"""pip's requirements and constraints."""

from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.pins.requirement import requirements
from rlaudit.pins.without_comments import without_comments


def read(text: str, package: Package) -> Iterator[Pin]:
    """Of every line that is no comment."""
    yield from requirements(without_comments(text), package)


PIN_FILE = PinFile(
    "requirements",
    2,
    ("requirements*.txt", "requirements/*.txt", "*requirements.txt", "constraints*.txt", "requirements*.in"),
    read,
    asks=True,
)
