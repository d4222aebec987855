"""setuptools' own files: their requirements are texts, wherever they are put together."""

from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.pins.requirement import requirements
from rlaudit.pins.without_comments import without_comments


def read(text: str, package: Package) -> Iterator[Pin]:
    """Every requirement that is written out."""
    yield from requirements(without_comments(text), package)


PIN_FILE = PinFile("setup file", 5, ("setup.py", "setup.cfg"), read, asks=True)
