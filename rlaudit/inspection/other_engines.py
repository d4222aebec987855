"""Files that set up rollouts with an engine which is not read here: they are named, not passed over.

Told by how frameworks spell it: SGLang's options and keys (slime, verl, ROLL, SkyRL, AReaL), and vLLM behind slime's
options (vime) or OAT's, whose defaults are their own. verl's main_generation samples for no trainer. What serves models
and trains none is in `configs/not_read.py`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rlaudit.configs.not_read import not_read
from rlaudit.configs.source import Source

MOST_NAMED = 3
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


@dataclass(frozen=True)
class OtherEngine:
    """What starts the rollouts of a file, and the first line that says so."""

    path: str
    name: str
    line: int


def other_engine(source: Source) -> OtherEngine | None:
    """The engine that is not read here, for a file in which no config was found."""
    text = source.text
    if source.suffix != ".json" and ("sglang" in text or "sgl." in text):
        line = _line(text, _SGLANG) or (_line(text, _SGLANG_KEY) if _ROLLOUTS.search(text) else None)
        if line is not None:
            return OtherEngine(source.path, "SGLang", line)
    if "--rollout-num-gpus-per-engine" in text and _line(text, _VLLM_OPTION) is not None:
        line = _line(text, _SLIME)
        if line is not None:
            return OtherEngine(source.path, "vLLM under slime's options", line)
    for name, pattern in _OTHERS.items() if source.is_shell else ():
        if (line := _line(text, pattern)) is not None:
            return OtherEngine(source.path, name, line)
    unread = not_read(source)
    return None if unread is None else OtherEngine(source.path, *unread)


def sentences(found: Iterable[OtherEngine]) -> list[str]:
    """One for each engine."""
    by_name: dict[str, list[OtherEngine]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    return [_sentence(name, files) for name, files in by_name.items()]


def _sentence(name: str, files: list[OtherEngine]) -> str:
    places = ", ".join(f"{one.path}:{one.line}" for one in files[:MOST_NAMED])
    more = f" and {len(files) - MOST_NAMED} more files" if len(files) > MOST_NAMED else ""
    return f"{places}{more}: rollouts run on {name}, which is not read here (`rlaudit list frameworks` says what is)"


def _line(text: str, pattern: re.Pattern[str]) -> int | None:
    lines = text.splitlines()
    return next(
        (number for number, line in enumerate(lines, 1) if pattern.search(line) and not _COMMENT.match(line)), None
    )
