"""Dumps with one JSON record per line, recognised by the keys that only their framework writes."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Part, Read
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.json_lines import first_record, json_lines
from rlaudit.tokens.logged_sequence import LoggedSequence, batches_of
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import TokenBatch

# What one record holds; None if it holds something that cannot be used, which is then among the faults.
Sequences = Callable[[dict[str, Any], Path, int, Faults], Iterable[LoggedSequence | None]]


# What a record raises whose fields are not what its framework writes.
UNFIT = (TypeError, ValueError, OverflowError, KeyError, IndexError, AttributeError)


def recogniser(keys: Collection[str]) -> Callable[[Path], bool]:
    """Return a test of whether the first record of a file has all of these keys."""
    return lambda path: set(first_record(path)) >= set(keys)


def reader(
    keys: Collection[str],
    what: str,
    sequences: Sequences,
    plain: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Read:
    """Return a function that reads every column of a file.

    keys: of every record. what: a record, as a fault calls it: "a NeMo-RL train_data record". plain: its fields as
    `sequences` takes them.
    """

    def read(
        path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
    ) -> Iterator[TokenBatch]:
        return batches_of(sequences_of(path, faults), prompts)

    def sequences_of(path: Path, faults: Faults) -> Iterator[LoggedSequence]:
        for line, record in json_lines(path, faults):
            if not isinstance(record, dict) or not set(record) >= set(keys):
                faults.add(Fault(path, FaultKind.OTHER_RECORD, f"not {what}; the line is left out", line), sequences=1)
                continue
            fields = record if plain is None else plain(record)
            yield from usable(partial(sequences, fields, path, line, faults), what, path, line, faults)

    return read


def usable(
    sequences: Callable[[], Iterable[LoggedSequence | None]], what: str, path: Path, line: int, faults: Faults
) -> list[LoggedSequence]:
    """Return the sequences of one record; none, and a fault, if a field is not what it should be."""
    try:
        return [sequence for sequence in sequences() if sequence is not None]
    except UNFIT as error:
        problem = f"not as {what} is written ({type(error).__name__}: {error}); the line is left out"
        faults.add(Fault(path, FaultKind.UNUSABLE, problem, line), sequences=1)
        return []
