"""Plug-ins of vLLM that an environment has: each process of vLLM runs them, and they may replace anything."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlaudit.files.read_regular import NotRegular, read_regular

_LARGEST_BYTES = 100_000
# general_plugins, platform_plugins, logits_processors and others.
_GROUPS = "vllm."
# Modules of vLLM, and of the recorder.
_OURS = re.compile(r"(vllm[.:]|rlaudit_)")


def foreign_plugins(folders: Iterable[str]) -> list[str]:
    """Return a sentence for each package in folders of packages that has plug-ins and is neither vLLM nor rlaudit."""
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.*-info/entry_points.txt"))]
    return [sentence for file in files for sentence in _plugins(file)]


def _plugins(file: Path) -> Iterator[str]:
    # Costs start-up time, and is needed with --python alone.
    from configparser import ConfigParser, Error

    points = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    try:
        points.read_string(read_regular(file, _LARGEST_BYTES, "no list of entry points").decode("utf-8"))
    except (OSError, NotRegular, UnicodeDecodeError, Error):
        return
    names = [
        f"{name} ({group})"
        for group in points.sections()
        if group.startswith(_GROUPS)
        for name, value in points.items(group)
        if not _OURS.match(value)
    ]
    if names:
        package = " ".join(file.parent.name.rpartition(".")[0].split("-")[:2])
        yield f"what {package} changes in vLLM: it has plug-ins that vLLM runs, {', '.join(names)}"
