"""A copy of a recording without what only its owner may read (`redaction.py`), under a key that is forgotten.

`rlaudit record --redacted-copy` writes it to be given away, and the page of a recording is made of one without tokens.
The rules hold for a redacted recording too, and for that of a stranger.
"""

import json
from collections.abc import Callable
from pathlib import Path

from rlaudit.recording.encoded_numbers import encoded
from rlaudit.recording.kept_lines import TrainerCall
from rlaudit.recording.recorded_lines import Damage, recorded_lines
from rlaudit.recording.recording import Recording
from rlaudit.recording.redaction import Record, Redaction

_UNUSABLE = "{\n"


def write_redacted_copy(
    recording: Recording, into: Path, rules: Redaction, rows: Callable[[TrainerCall], Record] | None = None
) -> None:
    """Write the copy into an empty folder, its processes numbered in their order. Raises OSError.

    rows: returns the stretches, ids and logprobs that a call of the trainer has in the copy; without it none are kept.
    """
    for number, process in enumerate(recording.processes, 1):
        damage = Damage(process.file.name)
        calls = {call.line: call for call in process.trainer}
        with (into / f"process-{number}.jsonl").open("x", encoding="utf-8") as file:
            lines = recorded_lines(process.file, damage)
            for line, record in lines:
                of_trainer = rows(calls[line]) if rows is not None and line in calls else {}
                file.write(json.dumps({**rules.redacted(record), **of_trainer}, default=encoded) + "\n")
            # What could not be used may hold anything: here it is as many lines that cannot be used.
            file.write(_UNUSABLE * sum(count for _, count in damage.counted()))
    of_processes = {sentence for process in recording.processes for sentence, _ in process.damaged}
    for number, _ in enumerate((sentence for sentence, _ in recording.damaged if sentence not in of_processes), 1):
        (into / f"unreadable-{number}.jsonl").write_text(_UNUSABLE, encoding="utf-8")
