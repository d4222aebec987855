"""verl: the console logger's lines, `step:12 - actor/entropy:0.42 - critic/rewards/mean:0.1`.

What stands before `step:` on a line (Ray's process names, colours) is passed over.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader

LINE = re.compile(r"\bstep:(\d+) - (\S.*:\S+.*)$")
ENTRY = re.compile(r"([^\s:][^:]*):(\S+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def recognises(path: Path, start: bytes) -> bool:
    """Return whether there is a line with a step and at least one metric."""
    return any(LINE.search(COLOUR.sub("", line)) for line in start.decode("utf-8", "replace").splitlines())


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the lines with metrics; values like `np.float64(0.1)` are read as their number."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            match = LINE.search(COLOUR.sub("", line.rstrip()))
            if match is None:
                continue
            entries = [ENTRY.fullmatch(part.strip()) for part in match[2].split(" - ")]
            values = {entry[1]: re.sub(r"^np\.\w+\((.*)\)$", r"\1", entry[2]) for entry in entries if entry}
            if None in entries:
                problems.add(f"line {number}", "a part that is not name:value")
            yield Row(f"line {number}", match[1], values)


READER = RunReader(
    name="verl-console", title="verl console output", recognises=recognises, read=read, own_step="step", rank=85
)
