"""Files without a config that is read, but with words of vLLM or a known framework: named, not passed over in silence.

An overlay whose base is elsewhere, a fragment, a launcher, or code that builds an engine in a way that is not followed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rlaudit.configs.source import Source

MOST_NAMED = 50
# Compiled where a file without a config is there: most runs have none.
_WORDS = (
    r"(?i)(?<![a-z])(vllm|engine_?args|actor_rollout_ref|verl|nemo_rl|openrlhf|skyrl|prime_rl|open_instruct|pipelinerl|unsloth"
    r"|gpu_memory_utilization)(?![a-z])"
)


@dataclass(frozen=True)
class Mention:
    """The first such word of a file, and its line."""

    path: str
    word: str
    line: int


def mention(source: Source) -> Mention | None:
    """What a file without a config mentions; None where it mentions nothing."""
    match = re.search(_WORDS, source.text)
    if match is None:
        return None
    return Mention(source.path, match.group().lower(), source.text.count("\n", 0, match.start()) + 1)


def sentences(found: Iterable[Mention]) -> list[str]:
    """One for each word, with the files that say it."""
    by_word: dict[str, list[Mention]] = {}
    for one in found:
        by_word.setdefault(one.word, []).append(one)
    return [_sentence(word, files) for word, files in by_word.items()]


def _sentence(word: str, files: list[Mention]) -> str:
    places = ", ".join(f"{one.path}:{one.line}" for one in files[:MOST_NAMED])
    folders: dict[str, int] = {}
    for one in files[MOST_NAMED:]:
        folder = one.path.rpartition("/")[0] or "."
        folders[folder] = folders.get(folder, 0) + 1
    more = "".join(f", {count} more in {folder}" for folder, count in folders.items())
    subject = "mentions" if len(files) == 1 else "mention"
    return f"{places}{more}: {subject} {word}, and no rollout config is read there"
