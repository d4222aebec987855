"""Where something is written, file, line, column and span of characters, and a change of such a span."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A place in a file."""

    path: str
    # 1-based, in characters.
    line: int
    column: int
    # The key as the file spells it, from its root (`vllm_config.vllm_kwargs.dtype`, `--dtype`).
    setting: str
    # Offsets of the value in the file's text, for edits; equal for a key without a value.
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


def one_key(inserted: str) -> str:
    """Return an inserted setting in one line: a value below several keys by its dotted key."""
    *above, last = filter(None, (line.strip(" \\,") for line in inserted.splitlines()))
    return "".join(f"{key.removesuffix(':')}." for key in above) + last
