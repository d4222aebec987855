"""Dumps with one JSON record per line, recognised by the keys that only their framework writes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Part, Read
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.json_lines import first_record, json_lines
from rlaudit.tokens.logged_sequence import LoggedSequence, batches_of
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import no_column_tells
from rlaudit.tokens.token_batch import TokenBatch

# What one record holds; None if it holds something that cannot be used, which is then among the faults.
Sequences = Callable[[dict[str, Any], Path, int, Faults], Iterable[LoggedSequence | None]]


# What a record raises whose fields are not what its framework writes.
UNFIT = (TypeError, ValueError, OverflowError, KeyError, IndexError, AttributeError)


def recogniser(own: Collection[str]) -> Callable[[Path], bool]:
    """Return a test of whether the first record of a file has all of these keys."""
    return lambda path: set(first_record(path)) >= set(own)


def reader(
    own: Collection[str],
    what: str,
    sequences: Sequences,
    plain: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    many: str = "",
) -> Read:
    """Read every column of a file. what: a record, as a fault calls it: "a PipelineRL batch". plain: its fields as
    `sequences` takes them. many: by what groups are known, if a record holds many sequences: none of its columns then
    says which of them share a prompt.
    """

    def read(
        path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
    ) -> Iterator[TokenBatch]:
        if many and part.groups:
            raise no_column_tells(path, what, many)
        return batches_of(found(path, faults, part.groups), prompts)

    def found(path: Path, faults: Faults, groups: str) -> Iterator[LoggedSequence]:
        for line, record in json_lines(path, faults):
            if not isinstance(record, dict) or not set(record) >= set(own):
                faults.add(Fault(path, FaultKind.OTHER_RECORD, f"not {what}; the line is left out", line), sequences=1)
                continue
            fields = record if plain is None else plain(record)
            yield from usable(partial(in_record, fields, path, line, faults, groups), what, path, line, faults)

    def in_record(
        record: dict[str, Any], path: Path, line: int, faults: Faults, groups: str
    ) -> Iterator[LoggedSequence | None]:
        for one in sequences(record, path, line, faults):
            yield one if one is None or not groups else of_group(one, record, groups)

    return read


def of_group(sequence: LoggedSequence, record: Mapping[str, Any], groups: str) -> LoggedSequence:
    """Put it under the group that a record's column says, or its own prompt if the record does not."""
    told = record.get(groups)
    return replace(sequence, group=sequence.prompt if told is None else told)


def usable(
    sequences: Callable[[], Iterable[LoggedSequence | None]], what: str, path: Path, line: int, faults: Faults
) -> list[LoggedSequence]:
    """Return the sequences of one record; none, and a fault, where a field is not what it should be."""
    try:
        return [one for one in sequences() if one is not None]
    except UNFIT as error:
        said = f"not as {what} is written ({type(error).__name__}: {error}); the line is left out"
        faults.add(Fault(path, FaultKind.UNUSABLE, said, line), sequences=1)
        return []
