"""A table whose columns have other names than ours (`compare --columns THEIRS=OURS`).

What the user names counts: a column that has our name already is not read if another one was named for it.

So a column may say which sequences share a prompt if a table's prompt ids do not: `--columns uid=prompt_id`, and with
`--columns prompt_id=sample_id` the ids that each sequence has for itself name the samples.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlaudit.errors import UsageError

PROMPT = "prompt_id"
IDENTITY = (PROMPT, "sample_id")


@dataclass(frozen=True)
class RenamedColumns:
    """The names that a table has for our columns."""

    # Our name of a column -> the table's.
    theirs: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any column has another name."""
        return bool(self.theirs)

    def in_table(self, ours: Iterable[str]) -> list[str]:
        """Return the table's names of our columns."""
        return [self.theirs.get(name, name) for name in ours]

    def ours(self, theirs: Sequence[str]) -> list[str]:
        """Return our names of the table's columns, in order; an unknown one for a column that is not to be read."""
        our_names = {name: our for our, name in self.theirs.items()}
        return [our_names.get(name, f"({name})" if name in self.theirs else name) for name in theirs]

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return one record under our names."""
        return dict(zip(self.ours(list(record)), record.values(), strict=True))

    def of(self, names: Iterable[str]) -> "RenamedColumns":
        """Return those that a table has."""
        names = set(names)
        return RenamedColumns({our: name for our, name in self.theirs.items() if name in names})


AS_OURS = RenamedColumns()
# What other projects' tables call our columns, beside our names spelt otherwise. A name that may stand for the other
# side, as old_log_probs and actor_logprobs, is none of them.
_ALSO_CALLED = {
    PROMPT: ("uid", "promptuid", "promptindex", "promptidx", "groupid"),
    "sample_id": ("sampleindex", "sampleidx", "completionid", "responseid", "rolloutid"),
    "position": ("tokenposition", "tokenindex", "tokenidx"),
    "rollout_logprob": (
        "rolloutlogp", "vllmlogprob", "vllmlogp", "samplinglogprob", "samplingpertokenlogp", "generationlogprob",
        "inferencelogprob", "enginelogprob",
    ),
    "trainer_logprob": ("trainerlogp", "traininglogprob", "trainlogprob", "trainlogp"),
    "token_id": (),
    "loss_mask": (),
}  # fmt: skip


def guessed_columns(names: Sequence[str], given: RenamedColumns = AS_OURS) -> RenamedColumns:
    """Return the columns of a table that its names tell: those that it has not under our name, and of one name only."""
    theirs = {}
    for our, also in _ALSO_CALLED.items():
        called = {_letters(our), *also}
        alike = [name for name in names if _letters(name) in called and name not in given.theirs.values()]
        if not {our, f"{our}s"} & set(names) and our not in given.theirs and len(alike) == 1:
            theirs[our] = alike[0]
    return RenamedColumns(theirs)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("s")


def check_used(renamed: RenamedColumns, tables: Iterable[RenamedColumns]) -> None:
    """Raise UsageError if a column is in none of the tables. tables: what each of them has."""
    used = {name for table in tables for name in table.theirs.values()}
    unused = [name for name in renamed.theirs.values() if name not in used]
    if unused:
        raise UsageError(f"--columns names {unused[0]!r}, which no table has")


def parse_columns(options: Iterable[str], ours: Iterable[str]) -> RenamedColumns:
    """Read options THEIRS=OURS. Raises UsageError for a name that is none of `ours`, or comes twice."""
    theirs: dict[str, str] = {}
    ours = list(ours)
    for text in options:
        name, _, our = text.rpartition("=")
        if not name or our not in ours:
            problem = f"--columns {text!r} names no column of ours" if name else f"--columns {text!r} is no THEIRS=OURS"
            raise UsageError(problem, f"there are: {', '.join(ours)}")
        if our in theirs:
            raise UsageError(f"--columns names {our} twice: {theirs[our]} and {name}")
        theirs[our] = name
    return RenamedColumns(theirs)
