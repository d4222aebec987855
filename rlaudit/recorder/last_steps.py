"""The last steps before a process died: what its ring holds, of all requests, kept or not.

A ring lies beside the file of its process, and is removed at an orderly end with nothing in flight. It is read as it
lies, also while it is being written. Its format stands in `shipped/rlaudit_ring.py`. Standard library only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlaudit.parse_json import parse_json
from rlaudit.read_regular import open_regular
from rlaudit.recorder.recorded_lines import RING_FIELDS, Damage, checked
from rlaudit.recorder.recorded_process import Process

ENDING = ".ring"
# A ring of 16 MB is read whole; one of a stranger's is read so far.
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class LastStep:
    """A step as its front end saw it, by its number. cached: prompt tokens from the prefix cache; None if unknown.

    ended: requests that ended with it.
    """

    step: int
    at: float
    requests: int
    tokens: int
    cached: int | None
    ended: int


@dataclass(frozen=True)
class Batch:
    """What a worker began to compute. returned: when the call had; None if it had not."""

    batch: int
    at: float
    requests: int
    tokens: int
    returned: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class LastSteps:
    """The ring of one process. in_flight: requests of its front end that had not ended.

    loads: when tensors began to arrive. left: whether the process ended in order, with this in flight. lost: what
    cannot be read, in sentences.
    """

    file: Path
    steps: tuple[LastStep, ...]
    batches: tuple[Batch, ...]
    loads: tuple[float, ...]
    in_flight: int
    left: bool
    lost: tuple[str, ...]

    @property
    def computing(self) -> Batch | None:
        """The batch that had not returned; None if there was none."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and (last.returned is None or last.error is not None) else None

    @property
    def at(self) -> float | None:
        """The clock of the last thing in it."""
        clocks = [step.at for step in self.steps[-1:]] + [batch.returned or batch.at for batch in self.batches[-1:]]
        return max(clocks, default=None)


def last_steps(process: Process) -> LastSteps | None:
    """Return what the ring of a process holds; None if it has none. Raises nothing for what a file may hold."""
    file = process.file.with_suffix(ENDING)
    damage = Damage(file.name)
    try:
        with open_regular(file) as ring:
            data = ring.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        damage.add(f"cannot be read: {error}")
        data = b""
    steps: list[LastStep] = []
    batches: dict[int, Batch] = {}
    loads: list[float] = []
    in_flight, left = 0, False
    for record in sorted(_records(data, damage), key=lambda record: record["number"]):
        kind, in_flight = record["kind"], record["in_flight"]
        if kind == "step":
            steps.append(LastStep(*(record[name] for name in ("step", "at", "requests", "tokens", "cached", "ended"))))
            in_flight = max(0, in_flight - record["ended"])
        elif kind == "batch":
            batches[record["batch"]] = Batch(*(record[name] for name in ("batch", "at", "requests", "tokens")))
        elif kind == "computed" and record["batch"] in batches:
            begun = batches[record["batch"]]
            batches[begun.batch] = replace(begun, returned=record["at"], error=record["error"])
        elif kind == "load":
            loads.append(record["at"])
        left = left or kind == "left"
    kept = tuple(steps), tuple(batches.values()), tuple(loads)
    return LastSteps(file, *kept, in_flight, left, damage.sentences())


def _records(data: bytes, damage: Damage) -> Iterator[dict[str, Any]]:
    """Yield the lines that can be used, as they lie."""
    # A line that another thread was writing is zeros.
    for place, line in enumerate(data.replace(b"\0", b"").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            damage.add("a line that is no record is left out", place)
            continue
        whole = checked(record, place, damage, RING_FIELDS)
        if whole is not None:
            yield whole
