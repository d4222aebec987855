"""Which vLLM a project runs, from what lies around the config: lock files, requirements, pyproject.toml, image tags.

Only exact versions count. A range, or several versions in one file, is said and not guessed at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rlaudit.home import expanded

LARGEST_LOCK = 20_000_000
_NUMBER = r"(?P<version>\d+\.\d+(?:\.\d+)?[\w.+!-]*)"
_EXTRAS = r"(?:\[[^\]\n]*\])?"
_IN_LOCK = re.compile(rf'^name = "vllm(?:-cpu)?"\r?\nversion = "{_NUMBER}"', re.M)
_IN_PIPFILE = re.compile(rf'"vllm":\s*\{{[^}}]*"version":\s*"=={_NUMBER}"')
_PINNED = re.compile(rf"^[ \t]*(?:-[ \t]*)?vllm(?:-cpu)?{_EXTRAS}[ \t]*===?[ \t]*{_NUMBER}", re.M)
_POETRY = _NUMBER.replace("version", "poetry")
_IN_PYPROJECT = re.compile(
    rf"""["']vllm(?:-cpu)?{_EXTRAS}\s*===?\s*{_NUMBER}|^vllm\s*=\s*["'](?:==\s*)?{_POETRY}["']""", re.M
)
_RANGE = re.compile(rf"""(?:^|["'])vllm{_EXTRAS}\s*(?P<range>[<>~!^][^"'#;\n]*)""", re.M)
_IN_TEXT = re.compile(
    rf"vllm/vllm-openai(?:-cpu)?:v?{_NUMBER}"
    rf"|vllm{_EXTRAS}=={_NUMBER.replace('version', 'pin')}"
    rf"|LLM engine \(v{_NUMBER.replace('version', 'engine')}\)"
    rf"|vLLM API server version {_NUMBER.replace('version', 'server')}"
)
# Releases of frameworks that require one vLLM exactly; of the extra named vllm where there is one.
_REQUIRED_BY = {
    ("openrlhf", "0.11.2"): "0.29.0",
    ("skyrl", "0.3.0"): "0.23.0",
    ("verl", "0.9.1"): "0.24.0",
}
_FRAMEWORK = re.compile(
    r"""(?:^|["'])(?P<name>openrlhf|skyrl|verl)\[[^\]\n]*vllm[^\]\n]*\]\s*==\s*(?P<version>[\w.]+)""", re.M
)
# In this order within a folder: what was resolved before what was asked for.
_FILES = (
    ("uv.lock", _IN_LOCK),
    ("poetry.lock", _IN_LOCK),
    ("pdm.lock", _IN_LOCK),
    ("Pipfile.lock", _IN_PIPFILE),
    ("requirements*.txt", _PINNED),
    ("requirements/*.txt", _PINNED),
    ("environment*.y*ml", _PINNED),
    ("pyproject.toml", _IN_PYPROJECT),
)


@dataclass(frozen=True)
class Hint:
    """One version and who says so: `uv.lock:812`."""

    version: Version
    where: str


@dataclass(frozen=True)
class Hints:
    """What is known. remarks: sentences about what was found and not used."""

    hints: tuple[Hint, ...] = ()
    remarks: tuple[str, ...] = ()


def hints_for(path: str, text: str) -> Hints:
    """Hints for one file: its own words first, then the folders above it, the nearest first."""
    own = _found(_IN_TEXT, text, path)
    around = _around(Path(path).absolute().parent)
    hints, remarks = _one_or_none(own, path)
    return Hints((*hints, *around.hints), (*remarks, *around.remarks))


@lru_cache(maxsize=4096)
def _around(folder: Path) -> Hints:
    """Hints in a folder and those above it, up to the repository's root."""
    hints: list[Hint] = []
    remarks: list[str] = []
    for name, pattern in _FILES:
        for path in sorted(folder.glob(name)):
            text = _text(path)
            shown = _shown(path)
            found, said = _one_or_none(_found(pattern, text, shown), shown)
            if not found and not said and name.startswith(("requirements", "pyproject")):
                found = tuple(_required_by_framework(text, shown))
                said = tuple(f"{shown} asks for vllm{span}: not one version" for span in _ranges(text) if not found)
            hints += found
            remarks += said
    if (folder / ".git").exists() or folder.parent == folder or folder == expanded("~"):
        return Hints(tuple(hints), tuple(remarks))
    above = _around(folder.parent)
    return Hints((*hints, *above.hints), (*remarks, *above.remarks))


def _found(pattern: re.Pattern[str], text: str, where: str) -> list[Hint]:
    found = []
    for match in pattern.finditer(text):
        group = match.lastgroup or "version"
        version = _version(match[group])
        if version is not None:
            line = text.count("\n", 0, match.start(group)) + 1
            found.append(Hint(version, f"{where}:{line}"))
    return found


def _version(text: str) -> Version | None:
    try:
        # `0.8.5+cu121` is 0.8.5 built for one CUDA; trailing dots and dashes come from sentences.
        return Version(Version(text.rstrip(".-")).public)
    except InvalidVersion:
        return None


def _one_or_none(found: list[Hint], where: str) -> tuple[tuple[Hint, ...], tuple[str, ...]]:
    versions = sorted({hint.version for hint in found})
    if len(versions) > 1:
        return (), (f"{where} names several vLLM versions ({', '.join(map(str, versions))}): none is taken from it",)
    return tuple(found[:1]), ()


def _required_by_framework(text: str, where: str) -> list[Hint]:
    return [
        Hint(Version(_REQUIRED_BY[match["name"], match["version"]]), f"{match['name']} {match['version']} in {where}")
        for match in _FRAMEWORK.finditer(text)
        if (match["name"], match["version"]) in _REQUIRED_BY
    ]


def _ranges(text: str) -> Iterator[str]:
    yield from dict.fromkeys(match["range"].strip() for match in _RANGE.finditer(text))


def _text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_LOCK:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
