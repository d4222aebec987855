"""Files without a config that is read, but with words of vLLM or a known framework: named, not passed over in silence.

An overlay whose base is elsewhere, a fragment, a launcher, or code that builds an engine in a way that is not followed.
Of code that uses vLLM and builds no engine, what it asks of the release in vain is said as well.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.configs.vllm_code import certain_stops, imports_vllm
from rlaudit.inspection.versions import choose

MOST_NAMED = 50
# Compiled where a file without a config is there: most runs have none.
_WORDS = (
    r"(?i)(?<![a-z])(vllm|engine_?args|actor_rollout_ref|verl|nemo_rl|openrlhf|skyrl|prime_rl|open_instruct|pipelinerl|unsloth"
    r"|gpu_memory_utilization)(?![a-z])"
)


@dataclass(frozen=True)
class Mention:
    """The first such word of a file, and its line. gone: what its code asks in vain, as sentences without an end."""

    path: str
    word: str
    line: int
    gone: tuple[str, ...] = ()


def mention(source: Source, before: Version | None, after: Version | None) -> Mention | None:
    """What a file without a config mentions; None where it mentions nothing. before, after: as they were asked for."""
    match = re.search(_WORDS, source.text)
    if match is None:
        return None
    line = source.text.count("\n", 0, match.start()) + 1
    return Mention(source.path, match.group().lower(), line, _gone(source, before, after))


def _gone(source: Source, before: Version | None, after: Version | None) -> tuple[str, ...]:
    if not imports_vllm(source):
        return ()
    vllm = choose(before, after, source.path, source.text).after
    return tuple(dict.fromkeys(f"{stop.where} {stop.what}" for stop in certain_stops(source, vllm)))


def sentences(found: Iterable[Mention]) -> list[str]:
    """One for each file of code with what it asks in vain, then one for each word, with the files that say it."""
    by_word: dict[str, list[Mention]] = {}
    gone: list[str] = []
    for one in found:
        if one.gone:
            gone.append("; ".join(one.gone))
        else:
            by_word.setdefault(one.word, []).append(one)
    return [*gone[:MOST_NAMED], *_unnamed(len(gone)), *(_sentence(word, files) for word, files in by_word.items())]


def _unnamed(count: int) -> list[str]:
    left = count - MOST_NAMED
    return [f"{left} more files of code that ask for what this vLLM does not have"] if left > 0 else []


def _sentence(word: str, files: list[Mention]) -> str:
    places = ", ".join(f"{one.path}:{one.line}" for one in files[:MOST_NAMED])
    folders: dict[str, int] = {}
    for one in files[MOST_NAMED:]:
        folder = one.path.rpartition("/")[0] or "."
        folders[folder] = folders.get(folder, 0) + 1
    more = "".join(f", {count} more in {folder}" for folder, count in folders.items())
    subject = "mentions" if len(files) == 1 else "mention"
    return f"{places}{more}: {subject} {word}, and no rollout config is read there"
