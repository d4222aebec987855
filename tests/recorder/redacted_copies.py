"""A recording as the recorder would have written it with --redact: the same lines through the same rules."""

import base64
import json
from array import array
from pathlib import Path
from typing import Any

from rlaudit.recorder.public_words import public_words
from rlaudit.recorder.shipped.rlaudit_recorder import _JSON, Numbers
from rlaudit.recorder.shipped.rlaudit_redaction import KEY_NAME, Redaction

KEY = bytes(range(32))


def redacted_copy(recording: Path, into: Path, key: bytes = KEY) -> Path:
    """Write a recording again, redacted."""
    public = public_words()
    rules = Redaction(key, public["words"], public["names"])
    into.mkdir(parents=True)
    for place, file in enumerate(sorted(recording.glob("*.jsonl"))):
        lines = [_as_put(json.loads(line)) for line in file.read_text().splitlines()]
        text = "".join(_JSON.encode(rules.redacted(line)) + "\n" for line in lines)
        (into / f"{rules.hidden('host')}-{place}-0a1b2c3d.jsonl").write_text(text)
    return into


def _as_put(record: dict[str, Any]) -> dict[str, Any]:
    """A record as it is given to the thread that writes."""
    if record["kind"] in ("prompt", "sequence", "trainer"):
        record["ids"] = Numbers(array("i", base64.b64decode(record["ids"])))
    if record.get("logprobs") is not None:
        record["logprobs"] = Numbers(array("f", base64.b64decode(record["logprobs"])), "f")
    if record["kind"] == "process":
        record["key"] = KEY_NAME
    return record
