"""pyproject.toml: dependencies, extras, groups, uv's overrides and constraints, sources by URL, Poetry's own table."""

import re
from collections.abc import Iterator

from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.requirement import pin_of, requirements
from rlaudit.pins.without_comments import without_comments

# `vllm = "0.9.1"` and `vllm = {version = "0.9.1", extras = [...]}`; a caret is a range of Poetry's.
_POETRY = re.compile(
    r"""^vllm\s*=\s*(?:\{[^}\n]*?version\s*=\s*)?["'](?P<clauses>[\^~]?[<>=!]*\s*\d[^"']*)["']""", re.M
)
_SOURCE = re.compile(
    r"""^vllm\s*=\s*\{[^}\n]*?git\s*=[^}\n]*?(?:rev|tag|branch)\s*=\s*["'](?P<revision>[^"']+)["']""", re.M
)


def read(text: str) -> Iterator[Pin]:
    """In the order of the file, but for Poetry's table and uv's sources, which have no requirement beside them."""
    said = without_comments(text)
    yield from requirements(said)
    for match in _POETRY.finditer(said):
        clauses, line = match["clauses"], line_at(said, match.start())
        yield pin_of(f"=={clauses}" if clauses[0].isdigit() else clauses, line)
    for match in _SOURCE.finditer(said):
        yield next(requirements(f"github.com/vllm-project/vllm@{match['revision']}"))


PIN_FILE = PinFile("pyproject.toml", 4, ("pyproject.toml",), read, asks=True)
