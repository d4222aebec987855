"""Finds engines that were never sent the weights another engine was sent last: equal numbers of updates do not show it.

Weights are known by a few elements of each tensor as it was sent, in any order and parts. An engine is judged only
if it was read after its last load: what it was sent since is not written yet.
Not covered: tensors without elements that compare, and engines of hosts with other clocks.
"""

import math
from collections.abc import Iterator, Sequence

from rlaudit.recorder.arrays import NotNumbers, float32s
from rlaudit.recorder.recorded_engine import RecordedEngine
from rlaudit.recorder.recording import Process, token_records
from rlaudit.recorder.shipped.rlaudit_recorder import ELEMENTS


def never_sent(engines: Sequence[RecordedEngine]) -> Iterator[tuple[RecordedEngine, RecordedEngine, int, int]]:
    """Yield an engine, the one that was sent weights last, how many of their tensors it never was, and of how many.

    It reads the files of the engines' workers.
    """
    for clock in dict.fromkeys(one.process.clock for one in engines):
        readers = {id(one): _reader(one) for one in engines if one.process.clock == clock and one.updates}
        beside = [(one, process) for one in engines if (process := readers.get(id(one))) is not None]
        if not beside:
            continue
        newest, reader = max(beside, key=lambda pair: pair[0].updates[-1].begin)
        last: dict[str, bytes] = {}
        for sent in _sent(reader):
            last.update(sent)
        for one, process in beside:
            missing = dict(last)
            for sent in _sent(process):
                for name in [name for name, elements in sent.items() if missing.get(name) == elements]:
                    del missing[name]
            if missing:
                yield one, newest, len(missing), len(last)


def _reader(one: RecordedEngine) -> Process | None:
    """Return the first process in which an engine's weights were read; None also if it has loaded some since."""
    process = next((process for process in one.processes if process.records.get("weights")), None)
    if process is None:
        return None
    read = max((record["load"] or 0 for _, record in token_records(process, ("weights",))), default=0)
    return process if read >= max((load.number for load in process.loads), default=0) else None


def _sent(process: Process) -> Iterator[dict[str, bytes]]:
    """Yield the elements of the tensors that were sent before each reading, by name."""
    for _, record in token_records(process, ("weights",)):
        names = process.tensors[record["sent"]].names if record["sent"] in process.tensors else ()
        try:
            values = float32s(record["values_sent"] or "")
        except NotNumbers:
            continue
        if len(values) == ELEMENTS * len(names):
            rows = (values[place * ELEMENTS : (place + 1) * ELEMENTS] for place in range(len(names)))
            yield {name: row.tobytes() for name, row in zip(names, rows, strict=True) if not math.isnan(row[0])}
