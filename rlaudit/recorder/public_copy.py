"""A copy of a recording without what only its owner may read, and without its tokens: what a public page is made of.

The rules are those of `rlaudit record --redact`, under a key that is forgotten, so that what they leave of a recording
is decided once. They hold for a redacted recording too, and for that of a stranger.
"""

import json
import secrets
from pathlib import Path

from rlaudit.recorder.public_words import public_words
from rlaudit.recorder.recorded_lines import Damage, recorded_lines
from rlaudit.recorder.recording import Recording
from rlaudit.recorder.redaction_key import BYTES
from rlaudit.recorder.shipped.rlaudit_redaction import Redaction

_UNUSABLE = "{\n"


def write_public_copy(recording: Recording, into: Path) -> None:
    """Write the copy into a new folder, its processes numbered in their order. Raises OSError."""
    public = public_words()
    rules = Redaction(secrets.token_bytes(BYTES), public["words"], public["names"])
    into.mkdir(parents=True)
    for number, process in enumerate(recording.processes, 1):
        damage = Damage(process.file.name)
        with (into / f"process-{number}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(rules.redacted(record)) + "\n" for _, record in recorded_lines(process.file, damage)
            )
            # What could not be used may hold anything: here it is as many lines that cannot be used.
            file.write(_UNUSABLE * sum(count for _, count in damage.counted()))
    of_processes = {sentence for process in recording.processes for sentence, _ in process.damaged}
    for number, _ in enumerate((sentence for sentence, _ in recording.damaged if sentence not in of_processes), 1):
        (into / f"unreadable-{number}.jsonl").write_text(_UNUSABLE, encoding="utf-8")
