"""rlaudit's own token table as JSONL: one line per token, or one line per sequence with lists in the columns.

The first line decides which of the two a file is; a line of the other kind is a fault. Scoring needs the prompts too:
prompt_token_ids, or prompt (a text) or messages (chat), on each line or in prompts.jsonl beside the table.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.json_lines import first_record, json_lines
from rlaudit.tokens.logged_sequence import LOGPROBS, PLURALS, LoggedSequence, batches_of, sequence_of_record
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import IDENTITY, RenamedColumns
from rlaudit.tokens.token_batch import TokenBatch

KINDS = {True: "one sequence", False: "one token"}
# The same in every token of a sequence.
PER_SEQUENCE = ("prompt_id", "sample_id", "step", "reward", "prompt_token_ids", "prompt", "messages")


def recognise(path: Path) -> bool:
    """Return whether the first record has a prompt, a sample and a rollout logprob."""
    return {*IDENTITY, "rollout_logprob"} <= columns(path)


def columns(path: Path) -> set[str]:
    """Return the columns of the first record, in the singular."""
    return {PLURALS.get(name, name) for name in first_record(path)}


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Read every column: JSON has to be parsed anyway."""
    sequences = sequences_of(json_lines(path, faults), path, faults, part.renamed)
    return batches_of((sequence for sequence in sequences if sequence is not None), prompts)


def sequences_of(
    lines: Iterable[tuple[int, Any]], path: Path, faults: Faults, renamed: RenamedColumns
) -> Iterator[LoggedSequence | None]:
    """Yield the sequences of numbered records, each of one token or of one sequence."""
    by_sequence: bool | None = None
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for line, written in lines:
        record = renamed.record(written) if renamed and isinstance(written, dict) else written
        key = _logprob_key(record) if isinstance(record, dict) else None
        if key is None or not set(IDENTITY) <= set(record):
            kind, problem = FaultKind.OTHER_RECORD, "no prompt_id, sample_id and rollout_logprob"
            if not isinstance(record, dict):
                kind, problem = FaultKind.NOT_AN_OBJECT, "not an object"
            faults.add(Fault(path, kind, f"{problem}; the line is left out", line), sequences=1)
            continue
        listed = isinstance(record[key], list)
        if by_sequence is None:
            by_sequence = listed
        if listed is not by_sequence:
            problem = f"this line is {KINDS[listed]}, the file's first is {KINDS[by_sequence]}: mixed schemas"
            faults.add(Fault(path, FaultKind.MIXED, f"{problem}; the line is left out", line), sequences=1)
            continue
        if by_sequence:
            yield sequence_of_record(record, path, line, faults)
            continue
        if rows and _starts_anew(rows[-1][1], record):
            yield _of_rows(rows, path, faults)
            rows = []
        rows.append((line, record))
    if rows:
        yield _of_rows(rows, path, faults)


def _logprob_key(record: Mapping[str, Any]) -> str | None:
    """Return the record's name of the rollout's logprobs, or else of the trainer's."""
    named = {PLURALS.get(key, key): key for key in record}
    return next((named[name] for name in LOGPROBS if name in named), None)


def _starts_anew(before: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    if any(before.get(name) != record.get(name) for name in (*IDENTITY, "step")):
        return True
    last, now = before.get("position"), record.get("position")
    return isinstance(last, int) and isinstance(now, int) and now <= last


def _of_rows(rows: list[tuple[int, Mapping[str, Any]]], path: Path, faults: Faults) -> LoggedSequence | None:
    """Return the lines of one sequence as one record of lists; columns that only some lines have get None."""
    names = dict.fromkeys(PLURALS.get(name, name) for _, row in rows for name in row)
    number, first = rows[0]
    record = {name: first.get(name) if name in PER_SEQUENCE else [row.get(name) for _, row in rows] for name in names}
    return sequence_of_record(record, path, number, faults)


EXPORT = Export(
    name="token-table-jsonl",
    title="rlaudit token table (JSONL)",
    files="*.jsonl, *.jsonl.gz, *.jsonl.zst",
    recognise=recognise,
    read=read,
    columns=columns,
)
