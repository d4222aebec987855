"""The recorder as a training finds it: a folder on PYTHONPATH. And what it wrote, line by line."""

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.recording.folder import Settings, write_folder
from rlaudit.recording.folder import variables as folder_variables
from rlaudit.recording.weight_updates import ServedEngine

Record = dict[str, Any]


def write_recorder(folder: Path, **settings: Any) -> Path:
    """Write the recorder's folder. settings: fields of Settings."""
    write_folder(folder, Settings(**settings))
    return folder


def variables(folder: Path, out: Path) -> dict[str, str]:
    """Return what switches the recorder on."""
    return folder_variables(folder, out, {})


def numbers(coded: str, dtype: str) -> Any:
    """Return the array that was written as base64."""
    return np.frombuffer(base64.b64decode(coded), dtype)


@dataclass(frozen=True)
class Sequence:
    """One kept sequence, as the caller of the engine sees it: cut at what the caller was given."""

    prompt: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish: str | None


@dataclass(frozen=True)
class Written:
    """A recording's files by name, each a list of its lines."""

    files: Mapping[str, list[Record]]

    def of_kind(self, kind: str) -> list[Record]:
        """Return the records of one kind, of all processes."""
        return [record for records in self.files.values() for record in records if record["kind"] == kind]

    def events(self, name: str, side: str = "begin") -> list[Record]:
        """Return the events of one hooked method."""
        return [event for event in self.of_kind("event") if event["what"].endswith(name) and event["side"] == side]

    def hooked(self) -> set[str]:
        """Return every target that some process hooked."""
        return {target for record in self.of_kind("hooks") for target in record["hooked"]}

    def sequences(self) -> list[Sequence]:
        """Return what was kept, with prompts in the place of their names."""
        prompts = {record["prompt"]: ids_of(record) for record in self.of_kind("prompt")}
        return [_sequence(record, prompts) for record in self.of_kind("sequence")]

    def total(self, count: str) -> int:
        """Return the sum of what the processes counted to the end."""
        last = [[line for line in records if line["kind"] == "totals"][-1:] for records in self.files.values()]
        return sum(line[count] for lines in last for line in lines)


def _sequence(record: Record, prompts: Mapping[str, tuple[int, ...]]) -> Sequence:
    logprobs, seen = record["logprobs"], record["visible"]
    held = None if logprobs is None else tuple(numbers(logprobs, "<f4").tolist()[:seen])
    return Sequence(prompts[record["prompt"]], ids_of(record)[:seen], held, record["finish"])


def ids_of(record: Record) -> tuple[int, ...]:
    """Return the token ids of a prompt or a sequence."""
    return tuple(numbers(record["ids"], "<i4").tolist())


def read(out: Path) -> Written:
    """Return all that was written, of which every line must be whole."""
    return Written({file.name: parsed(file.read_bytes().splitlines()) for file in sorted(out.glob("*.jsonl"))})


def parsed(lines: Iterable[bytes]) -> list[Record]:
    """Return the objects in lines of JSON."""
    return [json.loads(line) for line in lines]


def tokens_by_version(served: ServedEngine) -> list[int]:
    """Tokens of all requests that were sampled from each version of the weights."""
    found = [0] * (len(served.updates) + 1)
    for stamp, tokens in zip(served.steps.stamps, served.steps.tokens, strict=True):
        if math.isfinite(stamp):
            found[served.version_at(stamp)] += tokens
    return found


def sequences_by_version(served: ServedEngine) -> list[int]:
    """Kept sequences whose first token each version of the weights sampled."""
    found: Counter[int] = Counter()
    for front in served.fronts:
        for sequence in front.sequences:
            stamp = front.steps.stamp_of(sequence.first_step)
            found[served.version_at(stamp if math.isfinite(stamp) else sequence.at)] += 1
    return [found[number] for number in range(len(served.updates) + 1)]
