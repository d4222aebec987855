"""Files without a config that is read, but with words of vLLM or a known framework: named, not passed over in silence.

An overlay whose base is elsewhere, a fragment, a launcher, or code that builds an engine in a way that is not followed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from rlaudit.configs.program import program_of
from rlaudit.configs.source import Source

MOST_NAMED = 50
# Compiled where a file without a config is there: most runs have none.
_WORDS = (
    r"(?i)(?<![a-z])(vllm|engine_?args|actor_rollout_ref|verl|nemo_rl|openrlhf|skyrl|prime_rl|open_instruct|pipelinerl|unsloth"
    r"|gpu_memory_utilization)(?![a-z])"
)


# `exec bash "${BASE}"`, `bash scripts/run.sh`, and what a variable holds.
_SCRIPT = r"(?P<script>[^\s\"';|&]+\.(?:sh|bash|slurm|sbatch))"
_RUNS = rf"(?m)^\s*(?:exec\s+)?(?:bash|sh|sbatch)\s+[\"']?(?:\$\{{?(?P<name>\w+)\}}?[\"']?(?!/)|{_SCRIPT})"
_HELD = rf"(?m)^\s*(?:export\s+|readonly\s+)?NAME=[\"']?{_SCRIPT}"


@dataclass(frozen=True)
class Mention:
    """The first such word of a file, and its line; "" where there is none. starts: another script, or a program, that
    a shell script hands over to, and the line.
    """

    path: str
    word: str
    line: int
    starts: tuple[str, int] | None = None


def mention(source: Source, *, named: bool = False) -> Mention | None:
    """What a file without a config mentions; None where it mentions nothing. named: whether the file was, which asks
    where else to look.
    """
    match, starts = re.search(_WORDS, source.text), _starts(source) if named else None
    if match is None and starts is None:
        return None
    word, line = ("", 1) if match is None else (match.group().lower(), _line(source, match))
    return Mention(source.path, word, line, starts)


def _line(source: Source, match: "re.Match[str]") -> int:
    return source.text.count("\n", 0, match.start()) + 1


def _starts(source: Source) -> tuple[str, int] | None:
    """The last script that a shell script runs, by its file's name, also where a variable holds it; else the last
    Python program.
    """
    found = list(re.finditer(_RUNS, source.text)) if source.is_shell else []
    for match in reversed(found):
        held = re.search(_HELD.replace("NAME", re.escape(match["name"])), source.text) if match["name"] else None
        script = match["script"] or (held["script"] if held is not None else "")
        if script:
            return PurePath(script).name, _line(source, match)
    return _program(source)


def _program(source: Source) -> tuple[str, int] | None:
    try:
        started = [(program_of(command), command.place.line) for command in source.commands]
    except (ValueError, RecursionError):  # kept in source.refusals
        return None
    return next((one for one in reversed(started) if one[0].endswith(".py")), None)


def sentences(found: Iterable[Mention]) -> list[str]:
    """One for each script that hands over to another, then one for each word, with the files that say it."""
    by_word: dict[str, list[Mention]] = {}
    started: list[str] = []
    for one in found:
        if one.starts is not None:
            started.append(f"{one.path}:{one.starts[1]} hands over to {one.starts[0]}: inspect that one")
        if one.word:
            by_word.setdefault(one.word, []).append(one)
    return [*started, *(_sentence(word, files) for word, files in by_word.items())]


def _sentence(word: str, files: list[Mention]) -> str:
    places = ", ".join(f"{one.path}:{one.line}" for one in files[:MOST_NAMED])
    folders: dict[str, int] = {}
    for one in files[MOST_NAMED:]:
        folder = one.path.rpartition("/")[0] or "."
        folders[folder] = folders.get(folder, 0) + 1
    more = "".join(f", {count} more in {folder}" for folder, count in folders.items())
    subject = "mentions" if len(files) == 1 else "mention"
    runs = any(one.path.endswith(".py") or (one.starts or ("",))[0].endswith(".py") for one in files)
    recorded = "; `rlaudit record` writes down what a program gives vLLM when it runs" if runs else ""
    return f"{places}{more}: {subject} {word}, and no rollout config is read there{recorded}"
