"""The names that `explain`, `list` and a shell's completion know, by kind, and which of them belong together.

Nearly all are files, named after what they describe: names are found, and related, without an import of what they name.
"""

import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import rlaudit

Completed = Callable[[str], list[str]]
_PACKAGE = Path(rlaudit.__file__).parent


def _files(folder: str, suffix: str = ".py", joint: str = "-") -> dict[str, Path]:
    files = sorted(_PACKAGE.joinpath(folder).glob(f"[!_]*{suffix}"))
    return {file.stem.replace("_", joint): file for file in files}


# In Markdown.
TOPICS = _files("topics", ".md")
# The release that an example moves from or to says nothing of what moved.
_EXAMPLES = re.compile(r"^ *(from|to): .*", re.MULTILINE)
# A name of several words, one word between backticks, or a release.
_MENTIONS = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)+|`[a-z0-9]+`|\b\d+(?:\.\d+){2,3}\b")


@lru_cache(maxsize=1)
def described() -> Mapping[str, Mapping[str, Path]]:
    """Return the names of each kind, with the file that describes each."""
    frameworks = _files("configs/dialects/frameworks", ".yaml", joint="_")
    releases = _PACKAGE / "vllm" / "data" / "releases.json"
    return {
        "topics": TOPICS,
        "rules": {**_files("rules/advisories", ".yaml"), **_files("rules")},
        "factors": {
            **_files("laboratory/factors"),
            "weight-update": _PACKAGE / "laboratory" / "studies" / "updates" / "factor.py",
        },
        "causes": _files("causes"),
        "tests": _tests(),
        "metrics": _files("statistics/metrics", joint="_"),
        # Another program of a framework is a file as `trl.server.yaml`.
        "frameworks": {name: file for name, file in frameworks.items() if "." not in name},
        "versions": dict.fromkeys(json.loads(releases.read_text(encoding="utf-8")), releases),
    }


def _tests() -> dict[str, Path]:
    """Return the tests of `meaning/documented.py`, each with its first module."""
    folder = _PACKAGE / "meaning"
    text = folder.joinpath("documented.py").read_text(encoding="utf-8")
    entries = re.findall(r'"([\w-]+)": DocumentedTest\(\s*"[^"]*",\s*\((\w+)', text)
    return {name: folder / f"{module}.py" for name, module in entries}


def related(name: str) -> dict[str, list[str]]:
    """Return, by kind, the names that the files of `name` mention, and those whose files mention it.

    Nothing for a release: nearly every file mentions it.
    """
    own = {file: kind for kind, files in described().items() for other, file in files.items() if _same(other, name)}
    if not own or "versions" in own.values():
        return {}
    mentioned = {_folded(word) for file in own for word in _MENTIONS.findall(_EXAMPLES.sub("", _text(file)))}
    spelt = (_folded(name), _folded(name).replace("-", "_"))
    mention = re.compile(
        f"(?<![\\w-])({'|'.join(spelt)})(?![\\w-])" if len(set(spelt)) > 1 else f"(?:`|explain ){name}`"
    )
    by_kind = {}
    for kind, files in described().items():
        # A framework's file, and that of one of its defects, speaks of the framework's releases.
        if kind == "versions" and ("frameworks" in own.values() or any("\nof: " in _text(file) for file in own)):
            continue
        by_kind[kind] = [
            other
            for other, file in files.items()
            if file not in own and (_folded(other) in mentioned or _mentions(_text(file), spelt, mention))
        ]
    return {kind: others for kind, others in by_kind.items() if others}


def _folded(name: str) -> str:
    return name.strip("`").lower().replace("_", "-")


def _same(name: str, other: str) -> bool:
    return _folded(name) == _folded(other)


def _text(file: Path) -> str:
    # The file of the releases mentions nothing.
    return "" if file.suffix == ".json" else file.read_text(encoding="utf-8")


def _mentions(text: str, spelt: Iterable[str], mention: re.Pattern[str]) -> bool:
    # Most files do not have the word at all, which is seen sooner without an expression.
    return any(word in text for word in spelt) and mention.search(text) is not None


def rule_names() -> list[str]:
    """Return the names of rules, and of findings about suppressions."""
    from rlaudit.inspection.suppression import RULES

    return [*described()["rules"], *RULES]


def words_of_a_report() -> dict[str, str]:
    """Return what the topic `words` says about each word, in entries such as `- *word*, *other*: ...`."""
    text = _text(described()["topics"]["words"])
    entries = re.findall(r"^- (\*[^:]+\*): (.*(?:\n  .*)*)", text, re.MULTILINE)
    return {
        word.lower(): " ".join(about.split()) for words, about in entries for word in re.findall(r"\*(.+?)\*", words)
    }


def one_of(names: Callable[[], Iterable[str]]) -> Completed:
    """Return what completes a word; the names are looked up only if a shell wants them."""

    def complete(incomplete: str) -> list[str]:
        return sorted(name for name in names() if name.startswith(incomplete))

    return complete


def of_kind(kind: str) -> Completed:
    """Return what completes the names of a kind."""
    return one_of(lambda: described()[kind])


def formats() -> list[str]:
    """Return the formats of reports."""
    return [module.name for module in pkgutil.iter_modules([str(_PACKAGE / "report" / "rendering" / "formats")])]


def exports() -> list[str]:
    """Return the frameworks in whose form learned gates are printed."""
    folder = _PACKAGE / "report" / "rendering" / "exports"
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules([str(folder)])]
