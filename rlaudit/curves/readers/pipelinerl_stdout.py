"""PipelineRL: its log, lines `... Completed steps 12: {'rl/reward': '0.412', ...}`.

The values are printed strings. Releases before the mismatch metrics printed three decimals, so that a k3 of 4e-4
reads as 0.000: the comparison says where a curve never moves.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader

LINE = re.compile(r"Completed steps (\d+): (\{.*)")


def recognises(path: Path, start: bytes) -> bool:
    """Return whether such a line is among the first, or, as start-up logs are long, anywhere in a text file."""
    if b"Completed steps " in start:
        return True
    if b"\0" in start or path.suffix not in (".log", ".txt", ".out"):
        return False
    with path.open("rb") as file:
        return any(b"Completed steps " in line for line in file)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the lines with metrics; the dict is read as a literal, nothing is evaluated."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            match = LINE.search(line)
            if match is None:
                continue
            text = match[2].rstrip()
            try:
                # NaN and infinity are printed bare where they are not strings.
                values = ast.literal_eval(re.sub(r"(?<=: )(-?inf|nan)(?=[,}])", r"'\1'", text))
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                cut = not text.endswith("}")
                problems.add(f"line {number}", "cut off in the middle" if cut else "not a dict of Python")
                continue
            if isinstance(values, dict):
                yield Row(f"line {number}", match[1], {f"{key}": value for key, value in values.items()})


READER = RunReader(
    name="pipelinerl-stdout",
    title="PipelineRL log",
    recognises=recognises,
    read=read,
    own_step="completed steps",
    files=("info_0.log", "log/info_0.log", "finetune/log/info_0.log", "stdout.log"),
    rank=80,
)
