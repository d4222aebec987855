"""What could not be read or used of a token table: once for each kind, with the first place and how often it happened.

The rest of the table is used. A command that met a fault ends with 3, because figures of the rest say nothing of
what is missing, unless --allow-partial says that this is understood.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path


class FaultKind(StrEnum):
    """What went wrong."""

    UNREAD = "unread rest of a file"
    NOT_JSON = "not JSON"
    CUT_OFF = "line cut off"
    NOT_AN_OBJECT = "not an object"
    OTHER_RECORD = "another kind of record"
    MIXED = "mixed schemas"
    UNUSABLE = "unusable record"
    GAP = "missing tokens"
    MISSING = "missing value"
    IMPOSSIBLE = "impossible value"
    NO_TRAINER = "no partner in the trainer's table"
    NO_ROLLOUT = "no partner among the rollouts"
    OTHER_TOKENS = "other tokens in the other table"
    UNSCORED = "no trainer logprob"


@dataclass(frozen=True)
class Fault:
    """One thing wrong, in one sentence. Faults of one kind and column are counted together."""

    path: Path
    kind: FaultKind
    message: str
    # 1-based, in a text file.
    line: int | None = None
    # sequence, column: the names of the only ones concerned.
    sequence: str | None = None
    column: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line is not None else str(self.path)
        return f"{where}: {f'{self.sequence}: ' if self.sequence else ''}{self.message}"


@dataclass(frozen=True)
class Met:
    """The first fault of a kind, and how many there were.

    Tokens that could not be read are unknown, and count as none.
    """

    first: Fault
    count: int
    # sequences, tokens: left out because of them.
    sequences: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.first}{f' (and {self.count - 1} more like it)' if self.count > 1 else ''}"


@dataclass
class Faults:
    """The faults met so far, in the memory of their kinds: a broken file of any size needs no more."""

    met: dict[tuple[FaultKind, str], Met] = field(default_factory=dict)

    def add(self, fault: Fault, sequences: int = 0, tokens: int = 0, count: int = 1) -> None:
        """Note `count` faults alike, which together cost so many sequences and tokens."""
        self._note(Met(fault, count, sequences, tokens))

    def extend(self, other: "Faults") -> None:
        """Note what another part met."""
        for met in other.met.values():
            self._note(met)

    def of_a_sample(self) -> "Faults":
        """Return the same, without the sequences, which are counted elsewhere."""
        return Faults({key: replace(met, sequences=0, tokens=0) for key, met in self.met.items()})

    def without(self, columns: Sequence[str]) -> "Faults":
        """Return those of no column, or of another one."""
        return Faults({key: met for key, met in self.met.items() if met.first.column not in columns})

    @property
    def shown(self) -> list[Fault]:
        """The first fault of each kind."""
        return [met.first for met in self.met.values()]

    @property
    def count(self) -> int:
        """Faults of all kinds."""
        return sum(met.count for met in self.met.values())

    @property
    def sequences_left_out(self) -> int:
        """Sequences, or lines that may have held one."""
        return sum(met.sequences for met in self.met.values())

    @property
    def tokens_left_out(self) -> int:
        """Tokens of the sequences left out, as far as they were read."""
        return sum(met.tokens for met in self.met.values())

    @property
    def unread(self) -> bool:
        """Whether the rest of a file is unknown, however much it was."""
        return any(kind is FaultKind.UNREAD for kind, _ in self.met)

    def lines(self) -> list[str]:
        """Return one line for each kind."""
        return [*map(str, self.met.values())]

    def _note(self, new: Met) -> None:
        key = (new.first.kind, new.first.column)
        earlier = self.met.get(key)
        if earlier is not None:
            new = Met(
                earlier.first, earlier.count + new.count, earlier.sequences + new.sequences, earlier.tokens + new.tokens
            )
        self.met[key] = new
