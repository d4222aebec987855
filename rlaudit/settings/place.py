"""Where something is written, file, line, column and span of characters, and a change of such a span."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A place in a file.

    line, column: 1-based, in characters. setting: the key as it is spelt there, from the root of its file
    (`vllm_config.vllm_kwargs.dtype`, `--dtype`). start, end: offsets of the value in the file's text, for edits;
    equal where nothing is written (a bare key).
    """

    path: str
    line: int
    column: int
    setting: str
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Edit:
    """Replace text[start:end] of `path` by `replacement`; start == end inserts. Every other byte stays."""

    path: str
    start: int
    end: int
    replacement: str
