"""An engine's weights as they were read: after each update, and once a minute, a few elements of each tensor.

Held against what the updates sent, as the engine's dtype rounds it. Faults are what no update explains: tensors that
stayed as they were when others were sent, tied tensors that came apart, changes that nothing announced. The same
weights sent twice are none.
Not covered: tensors without a counterpart of the same shape (quantised, sharded, renamed), which are counted, and
elements that were not read. Standard library only: `inspect` asks for faults, too.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from rlaudit.recording.column import Column
from rlaudit.recording.kept_lines import WeightsRead
from rlaudit.recording.recorded_process import Process, TensorSet
from rlaudit.recording.weight_updates import MOVING
from rlaudit.text.counted import counted

# What may bring weights past `load_weights`. Waking up is none: sleep keeps them, or discards them until an update.
_ANNOUNCING = MOVING | {"collective_rpc", "add_lora", "update_config"}
_WAKING = frozenset({"wake_up"})
_SHOWN = 3
_FLOAT = 4  # bytes
# What stands for an element that does not compare.
_NAN = b"\x00\x00\xc0\x7f"
# A tensor that is held at most this far from what was sent, relative to that, was not transformed by its loader.
# The trade: what a training moves before it is read for the first time, against what a loader makes of other elements.
_NEAR = 0.1

# The elements of each tensor, as bytes: equal means equal to the bit.
Elements = dict[str, bytes]


@dataclass(frozen=True)
class ReadUpdate:
    """What was read after an update whose tensors were seen."""

    # On the process's clock.
    at: float
    # Elements that were sent with another value than the time before.
    changed: int
    # How many of these the engine's dtype rounds to the value it had.
    rounded_away: int
    # Root mean square, over tensors, of the distance between what was sent and what is held, relative to what was sent;
    # None if no tensor compares.
    apart: float | None


@dataclass
class WeightReadings:
    """What was read in one process."""

    readings: int = 0
    # Readings after an update whose tensors were seen.
    updates: list[ReadUpdate] = field(default_factory=list)
    # Tensors of updates that have a counterpart in the engine.
    compared: set[str] = field(default_factory=set)
    # Those of them that the engine held at some time about as they were sent, so that a difference means something.
    known: set[str] = field(default_factory=set)
    # Tensors of updates that have no counterpart.
    incomparable: set[str] = field(default_factory=set)
    # Tensors that updates brought and that were not noted: of very many experts.
    unread: int = 0
    # How often each tensor stayed as it was although another value was sent.
    stayed: Counter[str] = field(default_factory=Counter)
    # Those that took a third value, as loaders that transform a tensor make it.
    otherwise: set[str] = field(default_factory=set)
    # Updates that sent what the update before them had sent, as a trainer that stands still does.
    repeated: int = 0
    # Updates after which every tensor that had got another value had stayed.
    unmoved: int = 0
    # Readings after waking up in which weights were others than before, though no update had brought any.
    lost_asleep: int = 0
    # Readings in which a head that is tied to the embedding was not equal to it.
    untied: int = 0
    # The first changed tensor of each reading that changed without an announcement.
    unannounced: list[str] = field(default_factory=list)

    def faults(self) -> Iterator[str]:
        """Yield what no update explains, each as what follows "the engine's weights"."""
        if self.unmoved:
            yield f"stayed as they were in {self.unmoved} of {len(self.updates)} updates that sent other values"
        elif self.stayed:
            names = ", ".join(name for name, _ in self.stayed.most_common(_SHOWN))
            more = f" and {len(self.stayed) - _SHOWN} more" if len(self.stayed) > _SHOWN else ""
            yield (
                f"stayed in part as they were when other values were sent: {names}{more}, of {len(self.compared)} "
                f"tensors that compare, in up to {max(self.stayed.values())} of {len(self.updates)} updates"
            )
        if self.lost_asleep:
            yield (
                f"were others after sleep than before, and no update had brought them, in {self.lost_asleep} of "
                f"{self.readings} readings: level 2 discards them"
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
        held = len(self.known - set(self.stayed) - self.otherwise)
        parts = [
            f"weights were read back after {len(self.updates)} updates: {held} of {len(self.compared)} comparable "
            "tensors were always equal to what was sent, rounded to their dtype"
        ]
        if self.incomparable:
            parts.append(f"{len(self.incomparable)} tensors have no counterpart of their shape")
        if self.unread:
            parts.append(f"{self.unread} tensors of a layer with very many experts were not read")
        if self.repeated:
            parts.append(f"{counted(self.repeated, 'update')} sent the same values as the update before")
        changed = sum(update.changed for update in self.updates)
        if changed:
            share = f"{100 * (sum(update.rounded_away for update in self.updates) / changed):.1f} %"
            parts.append(
                f"of {changed} elements that the trainer changed, {share} changed by less than the engine's dtype "
                "can hold"
            )
        yield "; ".join(parts)


def weight_readings(process: Process, processes: Sequence[Process], is_tied: bool) -> WeightReadings | None:
    """Return what was read in a process; None if nothing was.

    processes: all of the engine, whose calls announce changes. is_tied: whether the model's head is its embedding.
    """
    if not process.weights:
        return None
    same_clock = [other for other in processes if other.clock == process.clock]
    announced, woken = _ends_of(same_clock, _ANNOUNCING), _ends_of(same_clock, _WAKING)
    compared, last = _Compared(), None
    readings = compared.readings
    model: Elements = {}  # as it was read last
    for reading in process.weights:
        held = elements_of(process.tensors, reading.tensors, reading.values)
        if held is None:
            continue
        readings.readings += 1
        if reading.sent is not None:
            compared.add(process.tensors, reading, model)
        elif last is not None and reading.load == last.load:
            begin, end = last.at, reading.at
            # Scales an engine takes from what it meets; no other tensor does it change by itself.
            moved = [name for name in held if "scale" not in name and model.get(name) not in (None, held[name])]
            if moved and not _any_between(announced, begin, end):
                if _any_between(woken, begin, end):
                    readings.lost_asleep += 1
                else:
                    readings.unannounced.append(moved[0])
        readings.untied += is_tied and _is_untied(held)
        model, last = held, reading
    compared.close()
    sets = {load.tensors for load in process.loads if load.tensors is not None}
    brought = {name for number in sets & process.tensors.keys() for name in process.tensors[number].names}
    readings.unread = len(brought - readings.compared - readings.incomparable) if readings.updates else 0
    return readings


def _ends_of(processes: Sequence[Process], names: Set[str]) -> list[float]:
    """Return when the calls of some methods ended."""
    # `collective_rpc` calls methods of workers by name; those of a user's own may bring weights.
    worker_methods = {"sleep", *_WAKING}
    calls = (call for process in processes for call in process.calls)
    ends = ((call.method if call.method in worker_methods else call.name, call.end, call.begin) for call in calls)
    return [begin if end is None else end for name, end, begin in ends if name in names]


def _any_between(clocks: Sequence[float], begin: float, end: float) -> bool:
    return any(begin <= clock <= end for clock in clocks)


@dataclass
class _Compared:
    """What updates sent against what the engine then held, and against what it held before."""

    readings: WeightReadings = field(default_factory=WeightReadings)
    # What each tensor was sent as last, what that is in the engine's dtype, and what the engine then held.
    past: dict[str, tuple[bytes, bytes, bytes]] = field(default_factory=dict)
    # Of each update, the tensors that did not move, and whether any other tensor did or held what was sent.
    stayed: list[tuple[list[str], bool]] = field(default_factory=list)

    def add(self, sets: Mapping[int, TensorSet], reading: WeightsRead, model: Elements) -> None:
        """Add what was read after an update. model: what was read before it."""
        # What is not written is as the one before it.
        as_rounded = reading.values_rounded or reading.values_sent
        columns = (reading.values_sent, as_rounded, reading.values_held or as_rounded)
        sent, rounded, held = (elements_of(sets, reading.sent, values) for values in columns)
        if sent is None or rounded is None or held is None:
            return
        readings, stayed, arrived = self.readings, [], False
        same = _shapes(sets, reading.sent).items() & _shapes(sets, reading.tensors).items()
        of_one_shape = {name for name, _ in same}
        changed = rounded_away = 0
        sent_before, distances = False, list[float]()
        for name, now in held.items():
            incomparable = _NAN * (len(now) // _FLOAT)
            if incomparable in (now, sent[name]):
                readings.incomparable.add(name)
                continue
            readings.compared.add(name)
            distance = _distance(sent[name], now)
            if distance <= _NEAR:
                readings.known.add(name)
                distances.append(distance)
            before: bytes | None = None
            if name in self.past:
                before, sent_before = self.past[name][2], True
                changes = _changes((sent[name], rounded[name]), self.past[name][:2])
                changed, rounded_away = changed + changes[0], rounded_away + changes[1]
            elif name in of_one_shape and len(model.get(name, b"")) == len(now):
                before = model[name]
            if before is not None and rounded[name] != before:
                arrived |= now != before
                if now == before:
                    stayed.append(name)
            if rounded[name] != now and now != before:
                readings.otherwise.add(name)
            self.past[name] = sent[name], rounded[name], now
        self.stayed.append((stayed, arrived))
        apart = math.sqrt(sum(distance * distance for distance in distances) / len(distances)) if distances else None
        readings.updates.append(ReadUpdate(reading.at, changed, rounded_away, apart))
        readings.repeated += sent_before and not changed

    def close(self) -> None:
        """Count the tensors that stayed: only known ones, as loaders may transform the others; all if none is known."""
        for stayed, arrived in self.stayed:
            unmoved = [name for name in stayed if name in self.readings.known] if self.readings.known else stayed
            self.readings.stayed.update(unmoved)
            self.readings.unmoved += bool(unmoved) and not arrived


def _distance(sent: bytes, held: bytes) -> float:
    """Return the root mean square distance, relative to what was sent; 0 for equal ones."""
    if sent == held:
        return 0.0
    sent_values, held_values = array("f", sent), array("f", held)
    size = sum(value * value for value in sent_values)
    apart = sum((before - after) ** 2 for before, after in zip(sent_values, held_values, strict=True))
    return math.sqrt(apart / size) if size > 0 and math.isfinite(apart) else math.inf


def _changes(now: tuple[bytes, bytes], before: tuple[bytes, bytes]) -> tuple[int, int]:
    """Return how many elements were sent with another value, and how many of them round to the old one."""
    if now[0] == before[0]:
        return 0, 0
    sent, old = array("I", now[0]), array("I", before[0])
    rounded, kept = array("I", now[1]), array("I", before[1])
    moved = [place for place, value in enumerate(sent) if value != old[place]]
    return len(moved), sum(rounded[place] == kept[place] for place in moved)


def _shapes(sets: Mapping[int, TensorSet], number: int | None) -> dict[str, tuple[int, ...]]:
    tensors = None if number is None else sets.get(number)
    return {} if tensors is None else dict(zip(tensors.names, tensors.shapes, strict=False))


def elements_of(sets: Mapping[int, TensorSet], number: int | None, values: Column | None) -> Elements | None:
    """Return the elements of each tensor of a set, as many of each; None if they do not fit."""
    tensors = None if number is None else sets.get(number)
    names = () if tensors is None else tensors.names
    data = b"" if values is None else values.read().tobytes()
    size = len(data) // max(1, len(names))
    if not size or size % _FLOAT or size * len(names) != len(data):
        return None
    return {name: data[size * place : size * (place + 1)] for place, name in enumerate(names)}


def _is_untied(held: Elements) -> bool:
    heads = [elements for name, elements in held.items() if name.endswith("lm_head.weight")]
    embeddings = [elements for name, elements in held.items() if name.endswith("embed_tokens.weight")]
    return len(heads) == len(embeddings) == 1 and heads != embeddings
