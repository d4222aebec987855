"""Files that configure an engine in a way that rlaudit does not read: which, and the line that shows it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from rlaudit.configs.source import Source

_COMMENT = re.compile(r"[ \t]*(#|//)")


def not_read(source: Source, *, of_its_ending: bool = False) -> tuple[str, int] | None:
    """Return what a file is written for, and the line that shows it; None if other code reads it.

    of_its_ending: whether only kinds of files count that have an ending of their own.
    """
    kinds = {source.suffix, "shell"} if source.is_shell else {source.suffix}
    for entry in _entries():
        any_file = not of_its_ending and source.suffix != ".json"
        if kinds & set(entry["files"]) if "files" in entry else any_file:
            line = _line_that_shows(source.text, entry)
            if line is not None:
                return entry["engine"], line
    return None


# Read only for a file without a config: most runs have none.
@lru_cache(maxsize=1)
def _entries() -> list[dict[str, Any]]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return entries


def _line_that_shows(text: str, entry: Mapping[str, Any]) -> int | None:
    """Return the line of the first match that is no comment; None if the file is of another kind."""
    if not all(word in text for word in entry.get("words", ())) or not re.search(entry.get("also", ""), text):
        return None
    for match in re.finditer(entry["pattern"], text, re.M | re.X):
        if not _COMMENT.match(text, text.rfind("\n", 0, match.start()) + 1):
            return text.count("\n", 0, match.start()) + 1
    return None
