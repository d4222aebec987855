"""The rows of a trainer's function in a redacted copy: the recorded completions in them, hashed as they are there.

A completion is known by its ids and by what lies before them, so a row is hashed completion by completion: each is a
stretch of its own, behind the last hashes of its prompt. Where no prompt decided, an id that is no token stands before
it. Ids of anything else (padding, other data) are left out, and a stretch without a completion is kept empty.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.encoded_numbers import NotNumbers, encoded, float32s, whole_numbers
from rlaudit.recording.recording import is_recording
from rlaudit.recording.redacted_copy import write_redacted_copy
from rlaudit.recording.redaction import Record, Redaction, new_redaction
from rlaudit.tokens.recorded.beginnings import BEHIND, CONTEXT, Found
from rlaudit.tokens.recorded.recorded_log import RecordedLog, recorded_log

_NO_TOKEN = -1


def redact(path: Path, into: Path) -> None:
    """Write a redacted copy of a recording, readable by its owner alone.

    Raises UsageError for what is no recording, or a place that holds something; NotFinished if it cannot be read or
    written.
    """
    if not is_recording(path):
        raise UsageError(f"{path} holds no recording", "name a folder that `rlaudit record` has written")
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise UsageError(f"{into} holds something", "name a new folder for the copy")
    log, rules = recorded_log(path), new_redaction(tokens=True)
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_redacted_copy(log.recording, into, rules, _Rows(log, rules).redacted)
    except OSError as error:
        raise NotFinished(
            f"the copy is not whole: {error}", "is there room, and may you write there? Remove it first"
        ) from error


@dataclass(frozen=True)
class _Stretch:
    row: int
    begin: int
    ids: Sequence[int] = ()
    logprobs: Sequence[float] = ()


class _Rows:
    """Makes the rows of one copy."""

    def __init__(self, log: RecordedLog, rules: Redaction) -> None:
        self.log, self.rules = log, rules
        # The last hashes of each prompt.
        self.ends: dict[str, Sequence[int]] = {}
        for sequence in (sequence for front in log.fronts for sequence in front.whole):
            if sequence.prompt not in self.ends:
                self.ends[sequence.prompt] = rules.beginnings(sequence.prompt_ids.tolist())[-CONTEXT:]

    def redacted(self, record: Record) -> Record:
        """Return the stretches of a `trainer` record, their ids and logprobs. What does not fit has neither."""
        lengths, spans = record["lengths"], len(record["rows"]) == len(record["begins"]) == len(record["lengths"])
        try:
            ids, logprobs = whole_numbers(record["ids"]), float32s(record["logprobs"])
        except NotNumbers:
            return {}
        if record["backward"] or not spans or not sum(lengths) == len(ids) == len(logprobs):
            return {}
        stretches = list(self._stretches(record, ids, logprobs))
        return {
            "rows": [stretch.row for stretch in stretches],
            "begins": [stretch.begin for stretch in stretches],
            "lengths": [len(stretch.ids) for stretch in stretches],
            "ids": encoded(array("i", [token for stretch in stretches for token in stretch.ids])),
            "logprobs": encoded(array("f", [value for stretch in stretches for value in stretch.logprobs])),
        }

    def _stretches(self, record: Record, ids: "array[int]", logprobs: "array[float]") -> Iterator[_Stretch]:
        rows, ids_N = record["rows"], np.asarray(ids, dtype=np.int64)
        begins, lengths = (np.array(record[name], dtype=np.int64) for name in ("begins", "lengths"))
        firsts = np.cumsum(lengths) - lengths
        joined = set()
        for completion in self.log.rows.beginnings.find(ids_N, begins, lengths):
            joined.add(completion.stretch)
            behind = completion.first - int(firsts[completion.stretch])
            before = self._before(completion, behind, ids)
            span = slice(completion.first, completion.first + completion.length)
            yield _Stretch(
                rows[completion.stretch],
                record["begins"][completion.stretch] + behind - len(before),
                [*before, *self.rules.beginnings(ids[span])],
                [*[math.nan] * len(before), *logprobs[span]],
            )
        yield from (_Stretch(row, record["begins"][at]) for at, row in enumerate(rows) if at not in joined)

    def _before(self, completion: Found, behind: int, ids: "array[int]") -> Sequence[int]:
        """Return what stands before a completion in the copy. behind: how many ids of its stretch lie before it."""
        if not behind:
            return ()
        prompts = {self.log.rows.known[number].prompt for number in completion.numbers}
        end = self.ends[prompts.pop()][-behind:] if len(prompts) == 1 and ids[completion.first - 1] >= 0 else ()
        return end if len(end) >= BEHIND else (_NO_TOKEN,)
