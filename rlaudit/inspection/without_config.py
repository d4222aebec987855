"""Files in which no config is read, and that seem to set up rollouts all the same: the report names them.

Some run an engine that is not read here (`configs/not_read.yaml`). Others have words of vLLM or a known framework: an
overlay whose base is elsewhere, a fragment, a launcher, or code that builds an engine in a way that is not followed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rlaudit.configs.dialects.spec import head_of, shipped
from rlaudit.configs.not_read import not_read
from rlaudit.configs.source import Source

MOST_OF_AN_ENGINE = 3
MOST_OF_A_WORD = 50
# What makes a framework's rollouts run on vLLM, with the value behind it: without it they run on transformers.
_SWITCHES = ("use_vllm", "fast_inference")
_SWITCH = re.compile(rf"""\b(?P<name>{"|".join(_SWITCHES)})\b["']?(?:\s*[:=]\s*|[ \t]+)?(?P<value>\w*)""")
_OFF = {"false", "no", "off", "0", "none"}


@dataclass(frozen=True)
class OtherEngine:
    """An engine that is not read here and runs a file's rollouts, with the first line that shows it."""

    path: str
    name: str
    line: int
    # Why vLLM is not it, else empty.
    why: str = ""


@dataclass(frozen=True)
class Mention:
    """The first word of vLLM or a framework in a file, empty if it has none, with its line."""

    path: str
    word: str
    line: int


def other_engine(source: Source) -> OtherEngine | None:
    """Return the engine of a file without a config, if it is one that is not read here."""
    unread = not_read(source)
    return _without_vllm(source) if unread is None else OtherEngine(source.path, *unread)


def _without_vllm(source: Source) -> OtherEngine | None:
    """Return transformers if a file says in each place that its rollouts do not run on vLLM.

    A commented line says so of a script and a program; a YAML file may inherit the value.
    """
    off: OtherEngine | None = None
    # Most files have neither word, which the pattern takes ten times as long to see.
    for match in _SWITCH.finditer(source.text) if any(word in source.text for word in _SWITCHES) else ():
        before = source.text[source.text.rfind("\n", 0, match.start()) + 1 : match.start()]
        is_comment = "#" in before and source.suffix not in {".yaml", ".yml"}
        if not is_comment and match["value"].lower() not in _OFF:
            return None
        why = f"{match['name']} is {'commented out' if is_comment else match['value']}"
        off = off or OtherEngine(source.path, "transformers", _line(source, match), why)
    return off


def mention(source: Source) -> Mention | None:
    """Return what a file without a config mentions; None if it mentions nothing."""
    match = re.search(_words(), source.text)
    return None if match is None else Mention(source.path, match.group().lower(), _line(source, match))


# Compiled only for a file without a config: most runs have none.
@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Return the words of vLLM, and those of each framework that has some."""
    frameworks = (word for path in shipped().values() for word in head_of(path).mentioned_as)
    words = ("vllm", "engine_?args", "gpu_memory_utilization", *frameworks)
    return re.compile(rf"(?i)(?<![a-z])({'|'.join(words)})(?![a-z])")


def _line(source: Source, match: "re.Match[str]") -> int:
    return source.text.count("\n", 0, match.start()) + 1


def about_engines(engines: Iterable[OtherEngine]) -> list[str]:
    """Return one sentence for each engine."""
    by_name: dict[tuple[str, str], list[OtherEngine]] = {}
    for engine in engines:
        by_name.setdefault((engine.name, engine.why), []).append(engine)
    return [_about_engine(name, files) for (name, _), files in by_name.items()]


def _about_engine(name: str, files: Sequence[OtherEngine]) -> str:
    places = ", ".join(f"{file.path}:{file.line}" for file in files[:MOST_OF_AN_ENGINE])
    further = f" and {len(files) - MOST_OF_AN_ENGINE} more files" if len(files) > MOST_OF_AN_ENGINE else ""
    reason = files[0].why or "which is not read here (`rlaudit list frameworks` says what is)"
    return f"{places}{further}: rollouts run on {name}{':' if files[0].why else ','} {reason}"


def about_mentions(mentions: Iterable[Mention]) -> list[str]:
    """Return one sentence for each word, with its files."""
    by_word: dict[str, list[Mention]] = {}
    for mention in mentions:
        by_word.setdefault(mention.word, []).append(mention)
    return [_about_word(word, files) for word, files in by_word.items()]


def _about_word(word: str, files: Sequence[Mention]) -> str:
    places = ", ".join(f"{file.path}:{file.line}" for file in files[:MOST_OF_A_WORD])
    folders = Counter(file.path.rpartition("/")[0] or "." for file in files[MOST_OF_A_WORD:])
    further = "".join(f", {count} more in {folder}" for folder, count in folders.items())
    subject = "mentions" if len(files) == 1 else "mention"
    runs = any(file.path.endswith(".py") for file in files)
    recorded = "; `rlaudit record` writes down what a program gives vLLM when it runs" if runs else ""
    return f"{places}{further}: {subject} {word}, and no rollout config is read there{recorded}"
