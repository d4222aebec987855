"""Which vLLM a project runs, from what lies around the config: lock files, requirements, pyproject.toml, image tags.

Only exact versions count. A range, or several versions in one file, is said and not guessed at.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.pins.files import PinnedIn, pinned_around, text_of
from rlaudit.pins.package import VLLM
from rlaudit.pins.pin import Pin, images, line_at, release, requirements, span

# What an engine and its server say of themselves in a log.
_LOGGED = re.compile(r"(?:LLM engine \(v|vLLM API server version )(?P<version>\d+\.\d+[\w.+!-]*)")
# Releases of frameworks that require one vLLM exactly; of the extra named vllm where there is one.
_REQUIRED_BY = {
    ("openrlhf", "0.11.2"): "0.29.0",
    ("skyrl", "0.3.0"): "0.23.0",
    ("verl", "0.9.1"): "0.24.0",
}
_FRAMEWORK = re.compile(
    r"""(?:^|["'])(?P<name>openrlhf|skyrl|verl)\[[^\]\n]*vllm[^\]\n]*\]\s*==\s*(?P<version>[\w.]+)""", re.M
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
    own = _one_or_none([*images(text), *requirements(text), *_logged(text)], path)
    around = _around(Path(path).absolute().parent)
    return Hints((*own.hints, *around.hints), (*own.remarks, *around.remarks))


def _around(folder: Path) -> Hints:
    """Hints in a folder and those above it, up to the repository's root."""
    found = [_in_file(one) for one in pinned_around(folder, VLLM)]
    return Hints(
        tuple(hint for one in found for hint in one.hints), tuple(said for one in found for said in one.remarks)
    )


@lru_cache(maxsize=4096)
def _in_file(found: PinnedIn) -> Hints:
    where = _shown(found.path)
    said = _one_or_none(found.pins, where)
    if said.hints or said.remarks or not found.kind.asks:
        return said
    framework = tuple(_required_by_framework(text_of(found.path), where))
    ranges = dict.fromkeys(pin.written for pin in found.pins if span(pin) is not None)
    asked = () if framework else tuple(f"{where} asks for vllm{one}: not one version" for one in ranges)
    return Hints(framework, asked)


def _logged(text: str) -> Iterator[Pin]:
    for match in _LOGGED.finditer(text):
        yield Pin(match[0], release(match["version"]), line_at(text, match.start()))


def _one_or_none(pins: Sequence[Pin], where: str) -> Hints:
    exact = [(pin.version, pin.line) for pin in pins if pin.version is not None]
    versions = sorted({version for version, _ in exact})
    if len(versions) > 1:
        said = f"{where} names several vLLM versions ({', '.join(map(str, versions))}): none is taken from it"
        return Hints(remarks=(said,))
    return Hints(tuple(Hint(version, f"{where}:{line}") for version, line in exact[:1]))


def _required_by_framework(text: str, where: str) -> list[Hint]:
    return [
        Hint(Version(_REQUIRED_BY[match["name"], match["version"]]), f"{match['name']} {match['version']} in {where}")
        for match in _FRAMEWORK.finditer(text)
        if (match["name"], match["version"]) in _REQUIRED_BY
    ]


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
