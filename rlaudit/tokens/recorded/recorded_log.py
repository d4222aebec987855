"""A recording, read as a whole: its sequences with the weights they were sampled from and with the trainer's logprobs.

A trainer's row may lie in any file of the folder and after any sequence, so a recording is read three times: for what
its processes and weights were, for the hashes of its sequences with the trainer's rows, and for its tokens.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.recording.recorded_lines import Damage
from rlaudit.recording.recorded_process import Process, token_records
from rlaudit.recording.recording import Recording, open_recording
from rlaudit.recording.reused_blocks import Reused, reused_blocks
from rlaudit.recording.weight_updates import ServedWeights, served_weights
from rlaudit.tokens.logged_sequence import LoggedSequence
from rlaudit.tokens.recorded.beginnings import Beginnings
from rlaudit.tokens.recorded.sampling_groups import SamplingGroup
from rlaudit.tokens.recorded.trainer_rows import Caller, Known, Role, Scored, TrainerRows, Unused
from rlaudit.tokens.recorded.whole_sequences import LeftOut, WholeSequence, WholeSequences

# Of one front end: what parts the requests of one from those of the next.
MOST_REQUESTS = 1 << 40


@dataclass(frozen=True, eq=False)
class RecordedFront:
    """One front end."""

    served: ServedWeights
    whole: WholeSequences
    # The number of its first sequence among those of all front ends.
    first: int
    # What the sequences of its engine took from the prefix cache, by file and line.
    reused: Mapping[tuple[Path, int], Reused]

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        ends = [math.inf if update.end is None else update.end for update in self.served.updates]
        return np.array([update.begin for update in self.served.updates]), np.array(ends)

    def versions_at(self, stamps_T: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return (T,) how many updates had ended at each stamp, NaN if unknown, and (T,) whether one went on."""
        begins, ends = self._edges
        unknown_T = np.isnan(stamps_T)
        version_T = np.where(unknown_T, np.nan, np.searchsorted(ends, stamps_T, side="right"))
        return version_T, np.searchsorted(begins, stamps_T, side="right") > version_T


@dataclass(frozen=True, eq=False)
class RecordedLog:
    """What a recording has for `compare`."""

    recording: Recording
    fronts: tuple[RecordedFront, ...]
    # Equal parameters with how many tokens and sequences were sampled with them; first those that are judged.
    groups: tuple[tuple[SamplingGroup, int, int], ...]
    # Sequences that are not whole, by reason.
    left_out: Counter[LeftOut]
    rows: TrainerRows
    # Tokens that were sampled while weights were updated.
    inside: int
    unknown: int
    # Of the sequences that are judged, among all.
    numbers: frozenset[int]
    # How many are not, because they finished after the trainer's last recorded call.
    late: int
    # How many were scored by a process with another clock.
    elsewhere: int
    # How many are not, because the trainer's row may be another prompt's.
    alike: int
    adapters: int
    # Lines and files that cannot be used, in sentences, with how many they are.
    damaged: tuple[tuple[str, int], ...]

    @property
    def judged(self) -> SamplingGroup | None:
        """The parameters of the sequences that are judged; None for a recording without a whole sequence."""
        return self.groups[0][0] if self.groups else None

    @property
    def is_scored(self) -> bool:
        """Whether the trainer's logprobs of some sequence were recorded."""
        return bool(self.rows.scored)

    def sequences(self) -> Iterator[LoggedSequence]:
        """Yield the sequences of the judged group, in the order of the files."""
        roles = self.rows.roles()
        for front in self.fronts:
            for sequence in front.whole:
                number = front.first + sequence.number
                if number not in self.numbers:
                    continue
                scored = self.rows.scored.get(number, {})
                by_role = {role: _first(scored, role, roles) for role in Role}
                yield _logged(front, sequence, by_role, len(self.fronts) > 1)


def recorded_log(path: Path) -> RecordedLog:
    """Read a recording, except its tokens. Raises NotFinished as `open_recording` does."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return _recorded_log(path, tuple(_version(file) for file in files))


def _version(file: Path) -> tuple[str, int, int]:
    try:
        status = file.stat()
    except OSError:
        return (file.name, 0, 0)
    return (file.name, status.st_size, status.st_mtime_ns)


# One, and what it is held against.
@lru_cache(maxsize=2)
def _recorded_log(path: Path, versions: tuple[tuple[str, int, int], ...]) -> RecordedLog:
    recording = open_recording(path)
    fronts: list[RecordedFront] = []
    beginnings = Beginnings()
    known: list[Known] = []
    group_S: list[SamplingGroup] = []
    tokens: Counter[SamplingGroup] = Counter()
    inside = unknown = adapters = 0
    all_served = served_weights(recording)
    engines = {served.number for served in all_served}
    reused = {number: reused_blocks([served for served in all_served if served.number == number]) for number in engines}
    models = [_model(served) for served in all_served]
    several_models = len(set(models)) > 1
    for served, model in zip(all_served, models, strict=True):
        whole = WholeSequences(served, model if several_models else "")
        front = RecordedFront(served, whole, len(known), reused[served.number])
        fronts.append(front)
        request_places: list[int] = []
        for sequence in whole:
            beginnings.add(len(known), sequence.ids_T, sequence.prompt_ids)
            version_T, inside_T = front.versions_at(sequence.stamps_T)
            version = -1 if math.isnan(version_T[-1]) else int(version_T[-1])
            clock = served.front.clock
            known.append(Known(sequence.prompt, sequence.finished, clock, len(fronts), version, None))
            inside += int(inside_T.sum())
            unknown += int(np.isnan(version_T).sum())
            adapters += sequence.lora is not None
            group_S.append(sequence.sampling)
            request_places.append(sequence.asked)
            tokens[sequence.sampling] += len(sequence.ids_T)
        # The order of its requests is known once all of them are.
        order = whole.order.orders()
        if order is not None:
            for number, place in enumerate(request_places, front.first):
                known[number] = replace(known[number], order=len(fronts) * MOST_REQUESTS + order[place])
    rows = TrainerRows(beginnings, known)
    damage = [Damage(process.file.name) for process in recording.processes]
    for number, (process, file_damage) in enumerate(zip(recording.processes, damage, strict=True)):
        if process.records.get("trainer") and known:
            rows.read(number, token_records(process, ("trainer",)), process.clock, file_damage)
    # Of engines with several models, the one in training: a judge may have had more tokens.
    scored = {group_S[number] for number in rows.scored}
    sequences = Counter(group_S)
    groups = sorted(
        tokens, key=lambda group: (group.is_greedy, several_models and group not in scored, -tokens[group], str(group))
    )
    judged = frozenset(number for number, group in enumerate(group_S) if group == groups[0])
    # That the trainer had no time to score a sequence is no fault of the recording.
    alike = frozenset(rows.ambiguous - rows.scored.keys())
    late = rows.late()
    damage += [front.whole.damage for front in fronts]
    return RecordedLog(
        recording=recording,
        fronts=tuple(fronts),
        groups=tuple((group, tokens[group], sequences[group]) for group in groups),
        left_out=sum((front.whole.left_out for front in fronts), Counter()),
        rows=rows,
        inside=inside,
        unknown=unknown,
        numbers=judged - late - alike,
        late=len(judged & late),
        elsewhere=sum(
            any(call.clock != known[number].clock for call in calls.values()) for number, calls in rows.scored.items()
        ),
        alike=len(judged & (alike - late)),
        adapters=adapters,
        damaged=(*recording.damaged, *(sentence for file_damage in damage for sentence in file_damage.counted())),
    )


def _model(served: ServedWeights) -> str:
    """Return what the engine of a front end was started with."""
    written = [engine.written for engine in served.engine.builder.engines]
    return next((str(settings["model"]) for settings in written if "model" in settings), "unknown")


def _name(front: Process) -> str:
    return str(front.pid) if front.only is None else f"{front.pid}.{front.only}"


def _first(scored: Mapping[Caller, Scored], role: Role, roles: Mapping[Caller, Role]) -> Scored | None:
    of_role = [call for caller, call in scored.items() if roles[caller] is role]
    return min(of_role, key=lambda call: call.at, default=None)


def _logged(
    front: RecordedFront, sequence: WholeSequence, by_role: Mapping[Role, Scored | None], several_fronts: bool
) -> LoggedSequence:
    served = front.served
    version_T, _ = front.versions_at(sequence.stamps_T)
    # What the loss divides by: the old policy's logprobs, if they were made before the engine had other weights.
    old, current = by_role[Role.OLD], by_role[Role.CURRENT]
    clock = served.front.clock
    # On another host that is unknown, and the old policy's are what the loss divides by.
    in_time = old is not None and (old.clock != clock or old.at < served.next_begin(sequence.finished))
    scored = old if in_time or current is None else current
    columns = {"rollout_version": version_T}
    if sequence.cached is not None:
        columns["cached_tokens"] = np.full(len(version_T), float(sequence.cached))
    reused = front.reused.get((served.front.file, sequence.line))
    if reused is not None and reused.stale is not None:
        columns["stale_tokens"] = np.full(len(version_T), float(reused.stale))
    if scored is not None and scored.clock == clock:
        columns["trainer_version"] = np.full(len(version_T), float(served.version_at(scored.at)))
    reference = by_role[Role.REFERENCE]
    # Rollouts that are behind their trainer lie between it and the reference, which is no sign of wrong weights.
    if reference is not None and np.array_equal(version_T, columns.get("trainer_version", version_T)):
        columns["base_logprob"] = reference.logprobs_T.astype(np.float64)
    step = version_T[0]
    return LoggedSequence(
        prompt=sequence.prompt,
        sample=f"{_name(served.front)}/{sequence.request}" if several_fronts else sequence.request,
        rollout_logprobs_T=sequence.logprobs_T,
        trainer_logprobs_T=None if scored is None else scored.logprobs_T.astype(np.float64),
        token_id_T=sequence.ids_T,
        token_columns=columns,
        # Samples of one prompt are a group as far as the same weights drew them.
        sequence_columns={} if math.isnan(step) else {"step": float(step)},
        prompt_token_ids=sequence.prompt_ids,
        line=sequence.line,
    )


def unused_rows(log: RecordedLog) -> Counter[Unused]:
    """Return how many rows of the trainer's function are in no figure, and why."""
    unused = Counter(log.rows.unused)
    roles = log.rows.roles()
    unused[Unused.UNDECIDED] = sum(
        roles[caller] is Role.UNDECIDED for calls in log.rows.scored.values() for caller in calls
    )
    return +unused
