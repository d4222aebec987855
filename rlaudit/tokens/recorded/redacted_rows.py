"""The rows of a trainer's function in a redacted copy: the recorded completions in them, hashed as they are there.

A completion is known by its ids and by what lies before them, so a row is hashed completion by completion: each is a
stretch of its own, behind the last hashes of its prompt. Where no prompt decided, an id that is no token stands before
it. Ids of anything else (padding, other data) are left out, and a stretch without a completion is kept empty.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.kept_lines import TrainerCall
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
        for sequence in log.sequences:
            if sequence.prompt not in self.ends:
                self.ends[sequence.prompt] = rules.beginnings(sequence.prompt_ids.tolist())[-CONTEXT:]

    def redacted(self, call: TrainerCall) -> Record:
        """Return the stretches of a call, their ids and logprobs. What does not fit has neither."""
        if call.backward or not call.fits:
            return {}
        stretches = list(self._stretches(call))
        return {
            "rows": [stretch.row for stretch in stretches],
            "begins": [stretch.begin for stretch in stretches],
            "lengths": [len(stretch.ids) for stretch in stretches],
            "ids": array("i", [token for stretch in stretches for token in stretch.ids]),
            "logprobs": array("f", [value for stretch in stretches for value in stretch.logprobs]),
        }

    def _stretches(self, call: TrainerCall) -> Iterator[_Stretch]:
        firsts, ids, logprobs = [0, *accumulate(call.lengths)], call.ids.read(), call.logprobs.read()
        joined = set()
        for completion in self.log.rows.beginnings.find(call):
            joined.add(completion.stretch)
            behind = completion.first - firsts[completion.stretch]
            before = self._before(completion, behind, ids)
            span = slice(completion.first, completion.first + completion.length)
            yield _Stretch(
                call.rows[completion.stretch],
                call.begins[completion.stretch] + behind - len(before),
                [*before, *self.rules.beginnings(ids[span])],
                [*[math.nan] * len(before), *logprobs[span]],
            )
        yield from (_Stretch(row, call.begins[at]) for at, row in enumerate(call.rows) if at not in joined)

    def _before(self, completion: Found, behind: int, ids: "array[int]") -> Sequence[int]:
        """Return what stands before a completion in the copy. behind: how many ids of its stretch lie before it."""
        if not behind:
            return ()
        prompts = {sequence.prompt for sequence in completion.alike}
        end = self.ends[prompts.pop()][-behind:] if len(prompts) == 1 and ids[completion.first - 1] >= 0 else ()
        return end if len(end) >= BEHIND else (_NO_TOKEN,)
