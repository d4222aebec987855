"""Dockerfiles: the image they are built on, and what they install; `ARG VLLM_VERSION=...` is put where it is used."""

import re
from collections.abc import Iterator

from rlaudit.pins.image import images
from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.pins.requirement import requirements
from rlaudit.pins.without_comments import without_comments

_VARIABLE = re.compile(r"""^[ \t]*(?:ARG|ENV)[ \t]+(?P<name>\w+)[ =]["']?(?P<value>[\w.+-]+)["']?[ \t]*$""", re.M)

_USE = re.compile(r"\$\{?(?P<name>\w+)\}?")


def read(text: str, package: Package) -> Iterator[Pin]:
    """Images and installs, by line. A variable has the value that the file gives it; a build may give it another."""
    said = without_comments(text)
    values = {match["name"]: match["value"] for match in _VARIABLE.finditer(said)}
    said = _USE.sub(lambda use: values.get(use["name"], use[0]), said)
    yield from sorted([*images(said, package), *requirements(said, package)], key=lambda pin: pin.line)


PIN_FILE = PinFile("Dockerfile", 6, ("[Dd]ockerfile*", "*.[Dd]ockerfile", "Containerfile*"), read)
