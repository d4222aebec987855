"""A recording as a log for `compare`: its sequences, with their weights and with the trainer's logprobs.

A trainer's row may lie in any file of the folder and after any sequence: all sequences are known by the hashes of their
tokens before the rows are looked at.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from rlaudit.recording.recorded_lines import Damage
from rlaudit.recording.recorded_process import Process
from rlaudit.recording.recording import Recording, open_recording
from rlaudit.recording.reused_blocks import reused_blocks
from rlaudit.recording.weight_updates import ServedEngine
from rlaudit.tokens.logged_sequence import LoggedSequence
from rlaudit.tokens.recorded.beginnings import Beginnings
from rlaudit.tokens.recorded.sampling_groups import SamplingGroup
from rlaudit.tokens.recorded.trainer_rows import Caller, Role, Scored, TrainerRows, Unused
from rlaudit.tokens.recorded.whole_sequences import LeftOut, RecordedFront, WholeSequence, whole_sequences


@dataclass(frozen=True, eq=False)
class RecordedLog:
    """What a recording has for `compare`."""

    recording: Recording
    fronts: tuple[RecordedFront, ...]
    # All whole ones, in the order of the files.
    sequences: tuple[WholeSequence, ...]
    # (parameters, tokens, sequences) of what was sampled with equal ones; groups[0] is judged.
    groups: tuple[tuple[SamplingGroup, int, int], ...]
    # Sequences that are not whole.
    left_out: Counter[LeftOut]
    rows: TrainerRows
    # Those that are judged.
    judged: tuple[WholeSequence, ...]
    # Of groups[0]: finished after the trainer's last recorded call.
    late: int
    # Of groups[0]: the trainer's row may belong to another prompt.
    alike: int
    # Scored by a process with another clock.
    elsewhere: int
    # Lines and files that cannot be used, in sentences, with how many they are.
    damaged: tuple[tuple[str, int], ...]

    @property
    def group(self) -> SamplingGroup | None:
        """The parameters of the sequences that are judged; None for a recording without a whole sequence."""
        return self.groups[0][0] if self.groups else None

    @property
    def is_scored(self) -> bool:
        """Whether the trainer's logprobs of some sequence were recorded."""
        return bool(self.rows.scored)

    def logged(self) -> Iterator[LoggedSequence]:
        """Yield the judged sequences, with version, cached, stale, trainer and base columns."""
        roles = self.rows.roles()
        for sequence in self.judged:
            scored = self.rows.scored.get(sequence, {})
            by_role = {role: _first(scored, role, roles) for role in Role}
            yield _logged(sequence, by_role, len(self.fronts) > 1)


def recorded_log(path: Path) -> RecordedLog:
    """Return the log of a recording. Raises NotFinished as `open_recording` does."""
    return _log_of(open_recording(path))


# One, and what it is held against.
@lru_cache(maxsize=2)
def _log_of(recording: Recording) -> RecordedLog:
    fronts: list[RecordedFront] = []
    for served in recording.served:
        reused = reused_blocks(served)
        fronts += [
            RecordedFront(front, served, place, reused) for place, front in enumerate(served.fronts, len(fronts))
        ]
    models = [_model(front.served) for front in fronts]
    several_models = len(set(models)) > 1
    left_out = Counter[LeftOut]()
    of_trainers = [Damage(process.file.name) for process in recording.processes]
    of_sequences = [Damage(front.process.file.name) for front in fronts]
    sequences = [
        sequence
        for front, model, damage in zip(fronts, models, of_sequences, strict=True)
        for sequence in whole_sequences(front, model if several_models else "", left_out, damage)
    ]
    rows = TrainerRows(Beginnings())
    for sequence in sequences:
        rows.beginnings.add(sequence)
    for number, (process, damage) in enumerate(zip(recording.processes, of_trainers, strict=True)):
        if sequences:
            rows.read(number, process, damage)
    # Of engines with several models, the one in training: a judge may have had more tokens.
    scored = {sequence.sampling for sequence in rows.scored}
    counts, tokens = Counter[SamplingGroup](), Counter[SamplingGroup]()
    for sequence in sequences:
        counts[sequence.sampling] += 1
        tokens[sequence.sampling] += sequence.tokens
    groups = sorted(
        tokens, key=lambda group: (group.is_greedy, several_models and group not in scored, -tokens[group], str(group))
    )
    # That the trainer had no time to score a sequence is no fault of the recording.
    of_group = [sequence for sequence in sequences if sequence.sampling == groups[0]]
    late, alike = rows.late(sequences), rows.ambiguous - rows.scored.keys()
    return RecordedLog(
        recording=recording,
        fronts=tuple(fronts),
        sequences=tuple(sequences),
        groups=tuple((group, tokens[group], counts[group]) for group in groups),
        left_out=left_out,
        rows=rows,
        judged=tuple(sequence for sequence in of_group if sequence not in late and sequence not in alike),
        late=sum(sequence in late for sequence in of_group),
        alike=sum(sequence in alike and sequence not in late for sequence in of_group),
        elsewhere=sum(
            any(call.clock != sequence.front.clock for call in calls.values())
            for sequence, calls in rows.scored.items()
        ),
        damaged=(
            *recording.damaged,
            *(sentence for damage in (*of_trainers, *of_sequences) for sentence in damage.counted()),
        ),
    )


def _model(served: ServedEngine) -> str:
    """Return what the engine of a front end was started with."""
    written = [engine.written for engine in served.engine.builder.engines]
    return next((str(settings["model"]) for settings in written if "model" in settings), "unknown")


def _name(front: Process) -> str:
    return str(front.pid) if front.only is None else f"{front.pid}.{front.only}"


def _first(scored: Mapping[Caller, Scored], role: Role, roles: Mapping[Caller, Role]) -> Scored | None:
    of_role = [call for caller, call in scored.items() if roles[caller] is role]
    return min(of_role, key=lambda call: call.at, default=None)


def _logged(sequence: WholeSequence, by_role: Mapping[Role, Scored | None], several_fronts: bool) -> LoggedSequence:
    kept, front, served = sequence.kept, sequence.front, sequence.front.served
    version_T = sequence.version_T
    # What the loss divides by: the old policy's logprobs, if they were made before the engine had other weights.
    old, current = by_role[Role.OLD], by_role[Role.CURRENT]
    # On another host that is unknown, and the old policy's are what the loss divides by.
    in_time = old is not None and (old.clock != front.clock or old.at < served.next_begin(sequence.finished))
    scored = old if in_time or current is None else current
    columns = {"rollout_version": version_T}
    reused = front.reused.get(kept)
    of_sequence = {
        "cached_tokens": kept.cached,
        "stale_tokens": None if reused is None else reused.stale,
        "trainer_version": None if scored is None or scored.clock != front.clock else served.version_at(scored.at),
    }
    for name, value in of_sequence.items():
        if value is not None:
            columns[name] = np.full(len(version_T), float(value))
    reference = by_role[Role.REFERENCE]
    # Rollouts that are behind their trainer lie between it and the reference, which is no sign of wrong weights.
    if reference is not None and np.array_equal(version_T, columns.get("trainer_version", version_T)):
        columns["base_logprob"] = reference.logprobs_T
    return LoggedSequence(
        prompt=sequence.prompt,
        sample=f"{_name(front.process)}/{kept.request}" if several_fronts else kept.request,
        rollout_logprobs_T=sequence.logprobs_T,
        trainer_logprobs_T=None if scored is None else scored.logprobs_T,
        token_id_T=sequence.ids_T,
        token_columns=columns,
        # Samples of one prompt are a group as far as the same weights drew them.
        sequence_columns={} if np.isnan(version_T[0]) else {"step": float(version_T[0])},
        prompt_token_ids=sequence.prompt_ids,
        line=kept.line,
    )


def unused_rows(log: RecordedLog) -> Counter[Unused]:
    """Return how many rows of the trainer's function are in no figure, and why."""
    unused = Counter(log.rows.unused)
    roles = log.rows.roles()
    unused[Unused.UNDECIDED] = sum(
        roles[caller] is Role.UNDECIDED for calls in log.rows.scored.values() for caller in calls
    )
    return +unused
