"""pyproject.toml: dependencies, extras, groups, uv's overrides and constraints, sources by URL, Poetry's own table."""

import re
from collections.abc import Iterator

from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of, requirements
from rlaudit.pins.without_comments import without_comments

# `vllm = "0.9.1"` and `vllm = {version = "0.9.1", extras = [...]}`; a caret is a range of Poetry's.
_POETRY = r"""^%s\s*=\s*(?:\{[^}\n]*?version\s*=\s*)?["'](?P<clauses>[\^~]?[<>=!]*\s*\d[^"']*)["']"""
_SOURCE = r"""^%s\s*=\s*\{[^}\n]*?git\s*=[^}\n]*?(?:rev|tag|branch)\s*=\s*["'](?P<revision>[^"']+)["']"""


def read(text: str, package: Package) -> Iterator[Pin]:
    """In the order of the file, but for Poetry's table and uv's sources, which have no requirement beside them."""
    said = without_comments(text)
    yield from requirements(said, package)
    for match in re.finditer(_POETRY % package.name, said, re.M):
        clauses, line = match["clauses"], line_at(said, match.start())
        yield pin_of(f"=={clauses}" if clauses[0].isdigit() else clauses, line)
    for match in re.finditer(_SOURCE % package.name, said, re.M):
        yield next(requirements(f"github.com/{package.repositories[0]}@{match['revision']}", package))


PIN_FILE = PinFile("pyproject.toml", 4, ("pyproject.toml",), read, asks=True)
