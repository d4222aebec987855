"""Files in which no config is read, and that seem to set up rollouts all the same: the report names them.

Some run rollouts on an engine that is not read here: SGLang by its options and keys (slime, verl, ROLL, SkyRL, AReaL),
vLLM behind slime's options (vime) or OAT's, whose defaults are their own, verl's main_generation, which samples for no
trainer, and programs that serve models and train none (`configs/not_read.py`). Others have words of vLLM or a known
framework: an overlay whose base is elsewhere, a fragment, a launcher, or code that builds an engine in a way that is
not followed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from rlaudit.configs.not_read import not_read
from rlaudit.configs.program import program_of
from rlaudit.configs.source import Source
from rlaudit.dialects.spec import head_of, shipped

MOST_OF_AN_ENGINE = 3
MOST_OF_A_WORD = 50
_COMMENT = re.compile(r"^\s*(#|//)")
_SGLANG = re.compile(r"--sglang[-_]\w|\bsglang\s+serve\b|\bsglang\.(?:launch_server|Engine)\b|\bsgl\.Engine\(")
_SGLANG_KEY = re.compile(r"""(?:backend|name|mode|engine)["']?\s*[:=]\s*["']?sglang\b""")
_ROLLOUTS = re.compile(r"rollout|strategy_name|generator|gconfig")
_SLIME = re.compile(r"--rollout-num-gpus-per-engine\b")
_VLLM_OPTION = re.compile(r"--vllm-[a-z]")
_OTHERS = {
    "vLLM under OAT's options": re.compile(r"--vllm[-_]gpu[-_]ratio\b"),
    "vLLM under verl's main_generation, which trains nothing": re.compile(r"\bmain_generation(?:_server)?\b"),
}
# `exec bash "${BASE}"`, `bash scripts/run.sh`, and what a variable holds.
_SCRIPT = r"(?P<script>[^\s\"';|&]+\.(?:sh|bash|slurm|sbatch))"
_RUNS = rf"(?m)^\s*(?:exec\s+)?(?:bash|sh|sbatch)\s+[\"']?(?:\$\{{?(?P<name>\w+)\}}?[\"']?(?!/)|{_SCRIPT})"
_HELD = rf"(?m)^\s*(?:export\s+|readonly\s+)?NAME=[\"']?{_SCRIPT}"


@dataclass(frozen=True)
class OtherEngine:
    """An engine that is not read here and runs a file's rollouts, with the first line that shows it."""

    path: str
    name: str
    line: int


@dataclass(frozen=True)
class Mention:
    """The first word of vLLM or a framework in a file, empty if it has none, with its line."""

    path: str
    word: str
    line: int
    # The script or program to which a shell script hands over, with the line.
    starts: tuple[str, int] | None = None


def other_engine(source: Source) -> OtherEngine | None:
    """Return the engine of a file without a config, if it is one that is not read here."""
    text = source.text
    if source.suffix != ".json" and ("sglang" in text or "sgl." in text):
        line = _first_line(text, _SGLANG) or (_first_line(text, _SGLANG_KEY) if _ROLLOUTS.search(text) else None)
        if line is not None:
            return OtherEngine(source.path, "SGLang", line)
    if "--rollout-num-gpus-per-engine" in text and _first_line(text, _VLLM_OPTION) is not None:
        line = _first_line(text, _SLIME)
        if line is not None:
            return OtherEngine(source.path, "vLLM under slime's options", line)
    for name, pattern in _OTHERS.items() if source.is_shell else ():
        if (line := _first_line(text, pattern)) is not None:
            return OtherEngine(source.path, name, line)
    unread = not_read(source)
    return None if unread is None else OtherEngine(source.path, *unread)


def _first_line(text: str, pattern: re.Pattern[str]) -> int | None:
    lines = text.splitlines()
    return next(
        (number for number, line in enumerate(lines, 1) if pattern.search(line) and not _COMMENT.match(line)), None
    )


def mention(source: Source, *, named: bool = False) -> Mention | None:
    """Return what a file without a config mentions; None if it mentions nothing.

    named: whether the user named the file, and so is shown where else to look.
    """
    match, starts = re.search(_words(), source.text), _starts(source) if named else None
    if match is None and starts is None:
        return None
    word, line = ("", 1) if match is None else (match.group().lower(), _line(source, match))
    return Mention(source.path, word, line, starts)


# Compiled only for a file without a config: most runs have none.
@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Return the words of vLLM, and those of each framework that has some."""
    frameworks = (word for path in shipped().values() for word in head_of(path).mentioned_as)
    words = ("vllm", "engine_?args", "gpu_memory_utilization", *frameworks)
    return re.compile(rf"(?i)(?<![a-z])({'|'.join(words)})(?![a-z])")


def _line(source: Source, match: "re.Match[str]") -> int:
    return source.text.count("\n", 0, match.start()) + 1


def _starts(source: Source) -> tuple[str, int] | None:
    """Return the file name of the last script that a shell script runs, else its last Python program.

    A variable may hold the script's name.
    """
    matches = list(re.finditer(_RUNS, source.text)) if source.is_shell else []
    for match in reversed(matches):
        assignment = re.search(_HELD.replace("NAME", re.escape(match["name"])), source.text) if match["name"] else None
        script = match["script"] or (assignment["script"] if assignment is not None else "")
        if script:
            return PurePath(script).name, _line(source, match)
    try:
        started = [(program_of(command), command.place.line) for command in source.commands]
    except (ValueError, RecursionError):  # kept in source.refusals
        return None
    return next((start for start in reversed(started) if start[0].endswith(".py")), None)


def about_engines(engines: Iterable[OtherEngine]) -> list[str]:
    """Return one sentence for each engine."""
    by_name: dict[str, list[OtherEngine]] = {}
    for engine in engines:
        by_name.setdefault(engine.name, []).append(engine)
    return [_about_engine(name, files) for name, files in by_name.items()]


def _about_engine(name: str, files: Sequence[OtherEngine]) -> str:
    places = ", ".join(f"{file.path}:{file.line}" for file in files[:MOST_OF_AN_ENGINE])
    further = f" and {len(files) - MOST_OF_AN_ENGINE} more files" if len(files) > MOST_OF_AN_ENGINE else ""
    return f"{places}{further}: rollouts run on {name}, which is not read here (`rlaudit list frameworks` says what is)"


def about_mentions(mentions: Iterable[Mention]) -> list[str]:
    """Return a sentence for each script that hands over to another, then one for each word with its files."""
    by_word: dict[str, list[Mention]] = {}
    started: list[str] = []
    for mention in mentions:
        if mention.starts is not None:
            started.append(f"{mention.path}:{mention.starts[1]} hands over to {mention.starts[0]}: inspect that one")
        if mention.word:
            by_word.setdefault(mention.word, []).append(mention)
    return [*started, *(_about_word(word, files) for word, files in by_word.items())]


def _about_word(word: str, files: Sequence[Mention]) -> str:
    places = ", ".join(f"{file.path}:{file.line}" for file in files[:MOST_OF_A_WORD])
    folders = Counter(file.path.rpartition("/")[0] or "." for file in files[MOST_OF_A_WORD:])
    further = "".join(f", {count} more in {folder}" for folder, count in folders.items())
    subject = "mentions" if len(files) == 1 else "mention"
    runs = any(file.path.endswith(".py") or (file.starts or ("",))[0].endswith(".py") for file in files)
    recorded = "; `rlaudit record` writes down what a program gives vLLM when it runs" if runs else ""
    return f"{places}{further}: {subject} {word}, and no rollout config is read there{recorded}"
