"""What could not be read or used of a token table: where it is, which sequence, and in one sentence what is wrong.

The rest of the table is used. A command that met a fault ends with 3, because figures of what was left say nothing of
what was not, unless --allow-partial says that this is understood.
"""

from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 100


@dataclass(frozen=True)
class Fault:
    """One thing wrong. line: 1-based, in a text file. sequence: its name, where only one is concerned."""

    path: Path
    message: str
    line: int | None = None
    sequence: str | None = None

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line is not None else str(self.path)
        return f"{where}: {f'{self.sequence}: ' if self.sequence else ''}{self.message}"


@dataclass
class Faults:
    """The faults met so far: the first SHOWN in full, the others counted, so that a broken file needs no memory."""

    shown: list[Fault] = field(default_factory=list)
    count: int = 0
    sequences_left_out: int = 0

    def add(self, fault: Fault, sequences: int = 0) -> None:
        """Note a fault that costs `sequences` sequences."""
        self.count += 1
        self.sequences_left_out += sequences
        if len(self.shown) < SHOWN:
            self.shown.append(fault)

    def extend(self, other: "Faults") -> None:
        """Note what another part met."""
        self.count += other.count
        self.sequences_left_out += other.sequences_left_out
        self.shown.extend(other.shown[: SHOWN - len(self.shown)])

    def lines(self) -> list[str]:
        """One line per fault shown, and how many were not."""
        rest = self.count - len(self.shown)
        return [*map(str, self.shown), *([f"and {rest} more like these"] if rest else [])]
