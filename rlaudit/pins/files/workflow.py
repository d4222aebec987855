"""Workflows of GitHub and GitLab: what their jobs install and the images in which they run."""

from collections.abc import Iterator

from rlaudit.pins.image import images
from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.pins.requirement import requirements
from rlaudit.pins.without_comments import without_comments


def read(text: str, package: Package) -> Iterator[Pin]:
    """By line."""
    said = without_comments(text)
    yield from sorted([*images(said, package), *requirements(said, package)], key=lambda pin: pin.line)


PIN_FILE = PinFile("workflow", 8, (".github/workflows/*.y*ml", ".gitlab-ci.yml"), read)
