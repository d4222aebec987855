"""What an engine's weights were found to be: after each update, and once a minute, a few elements of each tensor.

Held against what the updates sent, as the engine's dtype rounds it. Faults are what no update explains: tensors that
stayed as they were when others were sent, tied tensors that came apart, changes that nothing announced. The same
weights sent twice are none.
Not covered: tensors without a counterpart of the same shape (quantised, sharded, renamed), which are counted, and
elements that were not read. Standard library only: `inspect` asks for faults, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlaudit.recorder.arrays import NotNumbers, float32s
from rlaudit.recorder.recording import Process, TensorSet, token_records
from rlaudit.recorder.shipped.rlaudit_recorder import ELEMENTS
from rlaudit.recorder.weight_updates import MOVING

# What may bring weights, or bring them back, past `load_weights`.
_ANNOUNCING = MOVING | {"collective_rpc", "wake_up", "add_lora", "update_config"}
_SHOWN = 3
_FLOAT = 4  # bytes
# What stands for a tensor that does not compare, and for elements of one.
_NAN = b"\x00\x00\xc0\x7f"

# The elements of each tensor, as bytes: equal means equal to the bit.
Elements = dict[str, bytes]


@dataclass
class WeightReadings:
    """What was read in one process."""

    readings: int = 0
    # Readings after an update whose tensors were seen.
    updates: int = 0
    # Tensors of updates that have a counterpart in the engine, and those that have none.
    compared: set[str] = field(default_factory=set)
    incomparable: set[str] = field(default_factory=set)
    # How often each tensor stayed as it was although another value was sent, and how often it took a third value, as
    # loaders that transform a tensor make it.
    stayed: Counter[str] = field(default_factory=Counter)
    otherwise: Counter[str] = field(default_factory=Counter)
    # Updates after which every tensor that had got another value had stayed.
    unmoved: int = 0
    # Readings in which a head that is tied to the embedding was not equal to it.
    untied: int = 0
    # The first changed tensor of each reading that changed without an announcement.
    unannounced: list[str] = field(default_factory=list)
    # Elements that were sent with another value than the time before, and those of them that the engine's dtype
    # rounds to the value it had.
    changed: int = 0
    rounded_away: int = 0

    def faults(self) -> Iterator[str]:
        """Yield what no update explains, each as what follows "the engine's weights"."""
        if self.unmoved:
            yield f"stayed as they were in {self.unmoved} of {self.updates} updates that sent other values"
        elif self.stayed:
            names = ", ".join(name for name, _ in self.stayed.most_common(_SHOWN))
            more = f" and {len(self.stayed) - _SHOWN} more" if len(self.stayed) > _SHOWN else ""
            yield (
                f"stayed in part as they were when other values were sent: {names}{more}, of {len(self.compared)} "
                f"tensors that compare, in up to {max(self.stayed.values())} of {self.updates} updates"
            )
        if self.untied:
            yield f"had another head than the embedding it is tied to, in {self.untied} of {self.readings} readings"
        if self.unannounced:
            times = f"{len(self.unannounced)} times" if len(self.unannounced) > 1 else "once"
            yield f"changed {times} without a call that announced it, first seen in {self.unannounced[0]}"

    def sentences(self) -> Iterator[str]:
        """Yield what is known beside the faults."""
        if not self.updates:
            yield f"weights were read {self.readings} times, none of them after an update whose tensors were seen"
            return
        held = len(self.compared - set(self.stayed) - set(self.otherwise))
        parts = [
            f"weights were read back after {self.updates} updates: {held} of {len(self.compared)} tensors that compare "
            "always held what was sent"
        ]
        if self.otherwise:
            parts.append(f"{len(self.otherwise)} held neither that nor what they had held")
        if self.incomparable:
            parts.append(f"{len(self.incomparable)} have no counterpart of their shape")
        if self.changed:
            share = self.rounded_away / self.changed
            parts.append(f"{share:.1%} of {self.changed} elements that changed were rounded to the value they had")
        yield "; ".join(parts)


def weight_readings(process: Process, processes: Sequence[Process], is_tied: bool) -> WeightReadings | None:
    """Return what was read in a process; None if nothing was. It reads the process's file.

    processes: all of the engine, whose calls announce changes. is_tied: whether the model's head is its embedding.
    """
    if not process.records.get("weights"):
        return None
    announced = _announcements(process, processes)
    found, last = WeightReadings(), None
    model: Elements = {}  # as it was read last
    # What each tensor was sent as last, what that is in the engine's dtype, and what the engine then held in its place.
    past: dict[str, tuple[bytes, bytes, bytes]] = {}
    for _, record in token_records(process, ("weights",)):
        held = _elements(process.tensors, record["tensors"], record["values"])
        if held is None:
            continue
        found.readings += 1
        if record["sent"] is not None:
            _compare(found, process.tensors, record, model, past)
        elif last is not None and record["load"] == last["load"]:
            moved = next(
                (name for name in held if _may_not_move(name) and model.get(name) not in (None, held[name])), None
            )
            if moved is not None and not any(last["at"] <= clock <= record["at"] for clock in announced):
                found.unannounced.append(moved)
        found.untied += is_tied and _is_untied(held)
        model, last = held, record
    return found


def _may_not_move(name: str) -> bool:
    """Whether no engine changes a tensor by itself. Scales it takes from what it meets."""
    return "scale" not in name


def _announcements(process: Process, processes: Sequence[Process]) -> list[float]:
    """Return when calls ended that may have changed weights."""
    own = [one for one in processes if one.clock == process.clock]
    calls = [call for one in own for call in one.calls if call.name in _ANNOUNCING]
    return [call.begin if call.end is None else call.end for call in calls]


def _compare(
    found: WeightReadings,
    sets: Mapping[int, TensorSet],
    record: dict[str, Any],
    model: Elements,
    past: dict[str, tuple[bytes, bytes, bytes]],
) -> None:
    """Hold what an update sent against what the engine then held, and against what it held before."""
    sent, rounded, held = (
        _elements(sets, record["sent"], record[name]) for name in ("values_sent", "values_rounded", "values_held")
    )
    if sent is None or rounded is None or held is None:
        return
    found.updates += 1
    same = _shapes(sets, record["sent"]).items() & _shapes(sets, record["tensors"]).items()
    of_one_shape = {name for name, _ in same}
    stayed, moved = [], 0
    for name, now in held.items():
        if now == _NAN * ELEMENTS:
            found.incomparable.add(name)
            continue
        found.compared.add(name)
        if name in past:
            _count_rounding(found, (sent[name], rounded[name]), past[name][:2])
            before: bytes | None = past[name][2]
        else:
            before = model.get(name) if name in of_one_shape else None
        if before is not None and rounded[name] != before:
            moved += now != before
            if now == before:
                stayed.append(name)
        if rounded[name] != now and now != before:
            found.otherwise[name] += 1
        past[name] = sent[name], rounded[name], now
    found.stayed.update(stayed)
    found.unmoved += bool(stayed) and not moved


def _count_rounding(found: WeightReadings, now: tuple[bytes, bytes], before: tuple[bytes, bytes]) -> None:
    for place in range(0, len(now[0]), _FLOAT):
        element = slice(place, place + _FLOAT)
        if now[0][element] != before[0][element]:
            found.changed += 1
            found.rounded_away += now[1][element] == before[1][element]


def _shapes(sets: Mapping[int, TensorSet], number: int) -> dict[str, tuple[int, ...]]:
    one = sets.get(number)
    return {} if one is None else dict(zip(one.names, one.shapes, strict=False))


def _elements(sets: Mapping[int, TensorSet], number: int, values: str | None) -> Elements | None:
    """Return the elements of each tensor of a set; None if they cannot be read."""
    names = sets[number].names if number in sets else ()
    try:
        found = float32s(values or "").tobytes()
    except NotNumbers:
        return None
    size = _FLOAT * ELEMENTS
    if not names or len(found) != size * len(names):
        return None
    return {name: found[size * place : size * (place + 1)] for place, name in enumerate(names)}


def _is_untied(held: Elements) -> bool:
    heads = [elements for name, elements in held.items() if name.endswith("lm_head.weight")]
    embeddings = [elements for name, elements in held.items() if name.endswith("embed_tokens.weight")]
    return len(heads) == len(embeddings) == 1 and heads != embeddings
