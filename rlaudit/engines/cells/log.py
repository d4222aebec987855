"""Which line of an engine's log says why it died?

vLLM V1 runs its engine in a process of its own, whose parent only repeats that it failed ("Engine core initialization
failed. See root cause above"). The cause is the first exception an engine process logged, or, without one, the last
exception that does not point elsewhere.
"""

import re
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ENGINE_ERROR = re.compile(r"^(?:\([A-Za-z]\w*(?: pid=\d+)?\)\s+)?ERROR \S+ \S+ \[[^\]]+\]\s?(?P<text>.*)$")
PROCESS_PREFIX = re.compile(r"^\([A-Za-z]\w*(?: pid=\d+)?\)\s?")
EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))(?:: .+)?$")
POINTS_ELSEWHERE = re.compile(
    r"Engine core initialization failed|See root cause above|EngineDeadError|EngineCore encountered an issue|"
    r"Engine process failed to start|WorkerProc initialization failed"
)
OUT_OF_MEMORY = re.compile(
    r"OutOfMemoryError|out of memory|MemoryError|Cannot allocate memory|No available memory for the cache blocks|"
    r"less than desired GPU memory utilization|can't allocate memory",
    re.IGNORECASE,
)
LONGEST = 400


def read_log(path: Path) -> list[str]:
    """Return the lines of a log without their colours; empty when the cell never got to write one."""
    if not path.exists():
        return []
    return [COLOUR.sub("", line) for line in path.read_text(errors="replace").splitlines()]


def root_cause(lines: list[str]) -> str | None:
    """Return the exception to blame, as the engine worded it, or None when the log holds none."""
    from_engine = [match["text"].strip() for line in lines if (match := ENGINE_ERROR.match(line))]
    everything = [PROCESS_PREFIX.sub("", line).strip() for line in lines]
    for text in from_engine:
        if EXCEPTION.match(text) and not POINTS_ELSEWHERE.search(text):
            return text[:LONGEST]
    blamed = [text for text in everything if EXCEPTION.match(text) and not POINTS_ELSEWHERE.search(text)]
    return blamed[-1][:LONGEST] if blamed else None


def says_out_of_memory(text: str) -> bool:
    """Return whether the words are those of an exhausted GPU or host."""
    return OUT_OF_MEMORY.search(text) is not None
