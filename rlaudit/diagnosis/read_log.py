"""A token log, read once, in memory that does not grow with it: what each part adds, and the whole.

A part is a file, or tables that were joined. Parts do not depend on each other, and are put together in the order of
their names: a log that is read by one machine or by many gives the same bits.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.errors import NotFinished
from rlaudit.statistics.measurement.measure import Tally
from rlaudit.statistics.measurement.running_tally import PartTally, RunningTally
from rlaudit.tokens.alignment import AlignmentReport, alignment_report
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.first_look import SIDES
from rlaudit.tokens.parallel_map import parallel_map
from rlaudit.tokens.parquet import KNOWN, MEASURED, PROMPT_IDS
from rlaudit.tokens.prompt_numbers import PROMPTS, PromptNumbers
from rlaudit.tokens.sequence_sample import SequenceSample
from rlaudit.tokens.sibling_groups import HELD_TOKENS, SiblingGroups
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch, concatenate

NAMED = 20
# Of a log of more files than this, so many are searched for causes.
MOST_SHARES = 64
# Multiples of it fill (0, 1) evenly, and none of their rhythms is that of whole numbers.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Counts:
    """What was in the table, or in a part of it; counts of parts add up."""

    tokens: int = 0
    sequences: int = 0
    compared_tokens: int = 0
    unscored_sequences: int = 0
    uncounted_tokens: int = 0
    # Of these: not by the loss mask, but by the first look.
    not_drawn_tokens: int = 0
    # Outside the filters that the trainer replays; in no figure.
    impossible_tokens: int = 0
    # Sequences whose two sides do not meet, by the kind of failure, once the whole log was read; in no figure.
    misaligned: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    # Tokens of the shortest sequence compared.
    shortest_sequence: int = sys.maxsize

    def __add__(self, other: "Counts") -> "Counts":
        """Return the counts of both."""
        return Counts(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            self.compared_tokens + other.compared_tokens,
            self.unscored_sequences + other.unscored_sequences,
            self.uncounted_tokens + other.uncounted_tokens,
            self.not_drawn_tokens + other.not_drawn_tokens,
            self.impossible_tokens + other.impossible_tokens,
            dict(Counter(self.misaligned) + Counter(other.misaligned)),
            min(self.shortest_sequence, other.shortest_sequence),
        )


@dataclass(frozen=True, eq=False)
class LogPart:
    """What was read of a part of a log."""

    counts: Counts
    faults: Faults
    alignment: AlignmentReport
    # Sums of the comparable tokens of aligned sequences, by prompt.
    tally: PartTally
    # Of the sound sequences that a trainer scored, shifted or not; None if there is none.
    sample: TokenBatch | None
    # What was wrong in the sample, in columns that the sums do not use.
    unlooked: Faults
    # Groups of samples of one prompt, with a trainer's logprobs and without.
    siblings: SiblingGroups
    unscored: SiblingGroups
    # Of the prompts, if their numbers are those of this part (`PromptNumbers`, apart) and not of the whole log.
    names: tuple[Any, ...] | None = None

    @property
    def grouped(self) -> bool:
        """Whether it holds groups of prompts."""
        return bool((self.tally.prompts >= PROMPTS).any())


def shares_of(files: int) -> int:
    """Return how many files share the sample: a power of two, so that one file more changes nothing."""
    return min(MOST_SHARES, 1 << max(0, files.bit_length() - 1))


def sampled_from(files: int) -> int:
    """Return n, if causes are searched for in every n-th file."""
    return max(1, files // MOST_SHARES)


def is_searched(place: int, sampled_from: int) -> bool:
    """Return whether causes are searched for in the file at this place: in one of so many, in no rhythm.

    Ranks write files in turn, so a fault of every second rank would be in none of every second file.
    """
    return int(place * GOLDEN % 1.0 * sampled_from) == 0


def read_file(
    export: Export,
    file: Path,
    part: Part,
    settings: CompareSettings,
    files: int,
    watched: Callable[[Iterator[TokenBatch]], Iterator[TokenBatch]] = iter,
) -> LogPart:
    """Read one file of a log of so many `files`. watched: passes the batches on, to count them.

    Raises NotFinished and UsageError as the reader of its format does.
    """
    faults, numbers, shares = Faults(), PromptNumbers(apart=True), shares_of(files)
    columns = (*(KNOWN if export.sample is None else MEASURED), PROMPT_IDS)
    batches = export.read(file, faults, numbers, columns, part)
    looked_at = (
        None if export.sample is None else export.sample(file, settings.evidence_tokens // shares, numbers, part)
    )
    log_part = read_part(watched(batches), file, settings, faults, looked_at, shares)
    return replace(log_part, names=numbers.names)


def read_part(
    batches: Iterable[TokenBatch],
    path: Path,
    settings: CompareSettings,
    faults: Faults,
    sample: Iterable[TokenBatch] | None = None,
    shares: int = 1,
) -> LogPart:
    """Read a part once. faults: of its reader. sample: its sequences with all columns, if `batches` has only some.

    shares: how many parts hold the whole sample together.
    """
    summed = RunningTally(2 * PROMPTS, settings=settings.objective)
    sampled = SequenceSample(settings.evidence_tokens // shares)
    siblings, unscored = SiblingGroups(HELD_TOKENS // shares), SiblingGroups(HELD_TOKENS // shares)
    alignment, counted, met = AlignmentReport(0), Counts(), Faults()
    for chunk in parallel_map(lambda batch: _chunk(batch, path, settings, summed), batches):
        met.extend(chunk.faults)
        counted += chunk.counts
        if chunk.scored is not None:
            # If a sample is read as well, the beginning stands in for one without a usable sequence.
            if sample is None or not sampled.tokens:
                sampled.add(chunk.scored)
            siblings.add(chunk.scored)
        if chunk.unscored is not None:
            unscored.add(chunk.unscored)
        if chunk.alignment is not None:
            alignment = added(alignment, chunk.alignment)
        if chunk.tally is not None:
            summed.add(chunk.tally)
    whole = Faults()
    whole.extend(faults)
    whole.extend(met)
    kept, unlooked = _looked_at(sample, sampled, path, settings)
    return LogPart(counted, whole, alignment, summed.compact(), kept, unlooked, siblings, unscored)


@dataclass(frozen=True, eq=False)
class _Chunk:
    """What a batch adds."""

    faults: Faults
    counts: Counts
    # The sound sequences that have a trainer logprob.
    scored: TokenBatch | None = None
    alignment: AlignmentReport | None = None
    tally: PartTally | None = None
    # All sequences that count, if none has a trainer logprob.
    unscored: TokenBatch | None = None


def _chunk(logged: TokenBatch, path: Path, settings: CompareSettings, summed: RunningTally) -> _Chunk:
    faults = Faults()
    looked_at = settings.first_look.applied(logged)
    batch = sound(looked_at, path, faults, settings.trainer_excludes)
    uncounted, not_drawn = (int((~part.counts_T).sum()) for part in (batch, looked_at))
    not_drawn -= int((~logged.counts_T).sum())
    counts = Counts(batch.tokens, batch.sequences, uncounted_tokens=uncounted, not_drawn_tokens=not_drawn)
    if not batch.sequences:
        return _Chunk(faults, counts)
    scored_S = np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) > 0
    if not scored_S.all():
        wanted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64) > 0
        counts += Counts(unscored_sequences=int((wanted_S & ~scored_S).sum()))
        if not scored_S.any():
            return _Chunk(faults, counts, unscored=batch.take(np.flatnonzero(wanted_S)) if wanted_S.any() else None)
        batch = batch.take(np.flatnonzero(scored_S))
    alignment = alignment_report(batch)
    aligned = batch
    if alignment.misaligned:
        kept = np.setdiff1d(np.arange(batch.sequences), [sequence.sequence for sequence in alignment.misaligned])
        if not kept.size:
            return _Chunk(faults, counts, batch, alignment)
        aligned = batch.take(kept)
    pairs = aligned.pairs()
    if settings.trainer_excludes:
        possible_T = np.isfinite(pairs.trainer_logprobs_T)
        counts += Counts(impossible_tokens=int(pairs.tokens - possible_T.sum()))
        pairs = pairs if possible_T.all() else pairs.keep(possible_T)
    if not pairs.tokens:
        return _Chunk(faults, counts, batch, alignment)
    counts += Counts(compared_tokens=pairs.tokens, shortest_sequence=int(pairs.sequence_lengths_S.min()))
    return _Chunk(faults, counts, batch, alignment, summed.part(pairs))


def _looked_at(
    sample: Iterable[TokenBatch] | None, sampled: SequenceSample, path: Path, settings: CompareSettings
) -> tuple[TokenBatch | None, Faults]:
    if sample is None:
        return sampled.batch(), Faults()
    faults = Faults()
    looked_at = (settings.first_look.applied(part) for part in sample)
    parts = [sound(part, path, faults, settings.trainer_excludes) for part in looked_at]
    parts = [part for part in parts if part.sequences and part.comparable_T.any()]
    # What the stream reads too, it has counted already.
    return concatenate(parts) if parts else sampled.batch(), faults.without(MEASURED)


def added(so_far: AlignmentReport, report: AlignmentReport) -> AlignmentReport:
    """Add two reports. The first NAMED shifted sequences keep their names."""
    return (so_far + report).named(NAMED)


@dataclass(frozen=True, eq=False)
class ReadLog:
    """What was read of a whole log. Of rollouts that no trainer has scored there is no tally and no sample."""

    counts: Counts
    # Of its sequences and tokens, the share that figures rest on.
    share: DataShare
    # Samples of one prompt, and the group of each (`tokens/sibling_groups.py`).
    groups: tuple[TokenBatch, Integers] | None
    alignment: AlignmentReport = field(default_factory=lambda: AlignmentReport(0))
    # Sums of the comparable tokens of aligned sequences.
    tally: Tally | None = None
    # Of all sound sequences, shifted or not.
    sample: TokenBatch | None = None
    # The files that it is of, if it is not of all.
    sampled_files: int | None = None
    # What was wrong in the sample and is counted nowhere else.
    unlooked: Faults = field(default_factory=Faults)


def together(
    parts: Iterable[LogPart],
    path: Path,
    faults: Faults,
    settings: CompareSettings,
    numbers: PromptNumbers | None = None,
    sampled_from: int = 1,
) -> ReadLog:
    """Put all parts together and note their faults.

    numbers: of the prompts of this log and of those it is compared with. sampled_from: n, if causes are searched for in
    every n-th part.
    Raises NotFinished if no token can be compared, and no samples with each other.
    """
    numbers = numbers or PromptNumbers()
    summed = RunningTally(PROMPTS, settings=settings.objective)
    alignment, counted, unlooked = AlignmentReport(0), Counts(), Faults()
    siblings, unscored = SiblingGroups(), SiblingGroups()
    samples: list[TokenBatch] = []
    sampled_files = 0
    for place, part in enumerate(parts):
        faults.extend(part.faults)
        counted += part.counts
        alignment = added(alignment, part.alignment)
        number_of = None if part.names is None else numbers.ours(part.names, part.grouped)
        summed.add(part.tally if number_of is None else replace(part.tally, prompts=number_of[part.tally.prompts]))
        siblings.merge(part.siblings, number_of)
        unscored.merge(part.unscored, number_of)
        batch = part.sample
        if batch is not None and (is_searched(place, sampled_from) or not samples):
            samples.append(batch if number_of is None else replace(batch, prompt_S=number_of[batch.prompt_S]))
            unlooked.extend(part.unlooked)
            sampled_files += 1
    if not samples:
        groups = unscored.groups()
        if groups is None:
            raise nothing_to_compare(counted, faults, settings)
        tokens = counted.tokens - counted.uncounted_tokens
        share = DataShare(
            counted.sequences, faults.sequences_left_out, tokens, faults.tokens_left_out, unread=faults.unread
        )
        return ReadLog(counted, share, groups)
    if counted.unscored_sequences:
        message = (
            f"{counted.unscored_sequences} of {counted.sequences} sequences lack trainer logprobs that others have, "
            "so they were left out of all figures"
        )
        faults.add(Fault(path, FaultKind.UNSCORED, message), sequences=counted.unscored_sequences)
    counted += Counts(misaligned={kind.value: count for kind, count in alignment.counts.items()})
    alignment = alignment.met()
    tally = summed.tally()
    looked_at = concatenate(samples) if len(samples) > 1 else samples[0]
    share = _share(tally, counted, faults)
    some = sampled_files if sampled_from > 1 else None
    return ReadLog(counted, share, siblings.groups(), alignment, tally, looked_at, some, unlooked)


def _share(tally: Tally, counted: Counts, faults: Faults) -> DataShare:
    """Return the share of the data that the figures rest on."""
    return DataShare(
        sequences=int(tally.sequences_P.sum()),
        sequences_left_out=faults.sequences_left_out + sum(counted.misaligned.values()),
        tokens=counted.compared_tokens,
        tokens_left_out=faults.tokens_left_out + counted.tokens - counted.uncounted_tokens - counted.compared_tokens,
        unread=faults.unread,
    )


def nothing_to_compare(counts: Counts, faults: Faults, settings: CompareSettings) -> NotFinished:
    """Return why a table cannot be judged."""
    unused = [reason for column, reason in settings.first_look.unused.items() if column in SIDES]
    if unused:
        return NotFinished(f"there is nothing to compare: {unused[0]}")
    if counts.unscored_sequences and not faults.sequences_left_out:
        return NotFinished(
            f"none of {counts.sequences} sequences has a trainer logprob: there is nothing to compare with",
            "give the trainer's table as second argument, or --score MODEL. Token ids of several samples per prompt "
            "would do as well: they show whether tokens were drawn from the reported logprobs",
        )
    first = f"; the first fault: {faults.shown[0]}" if faults.shown else ""
    if counts.uncounted_tokens and counts.uncounted_tokens == counts.tokens:
        first = f": the loss mask counts none of {counts.tokens} tokens"
    return NotFinished(f"there is no sequence to compare{first}")
