"""What one part of a log adds to a comparison: one pass over its batches, in memory that does not grow with it.

A part is a file, or tables that were joined. Parts know nothing of each other, and are put together in the order of
their names (`compare_stream.py`): a log that is read by one machine or by many gives the same bits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.diagnosis.comparison import CompareSettings, Counts
from rlaudit.measurement.running_tally import PartTally, RunningTally
from rlaudit.tokens.alignment import AlignmentReport, alignment_report
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.parallel_map import parallel_map
from rlaudit.tokens.parquet import KNOWN, MEASURED
from rlaudit.tokens.prompt_numbers import PROMPTS, PromptNumbers
from rlaudit.tokens.sequence_sample import SequenceSample
from rlaudit.tokens.sibling_groups import HELD_TOKENS, SiblingGroups
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch, concatenate

NAMED = 20
# A log of more files than this has its evidence from so many of them.
MOST_SHARES = 64


@dataclass(frozen=True, eq=False)
class LogPart:
    """Sums of the comparable tokens of aligned sequences, by prompt; what was met; and sequences to look at.

    evidence: a sample of the sound sequences that a trainer scored, shifted or not; None if there is none.
    unlooked: what was wrong in the sample and is in no column that the sums are of. siblings, unscored: groups of
    samples of one prompt, with a trainer's logprobs and without.
    names: of the prompts that have numbers of their own (`PromptNumbers`, apart); None if the numbers are those of the
    whole log already.
    """

    counts: Counts
    faults: Faults
    alignment: AlignmentReport
    tally: PartTally
    evidence: TokenBatch | None
    unlooked: Faults
    siblings: SiblingGroups
    unscored: SiblingGroups
    names: tuple[Any, ...] | None = None

    @property
    def grouped(self) -> bool:
        """Whether it holds groups of prompts."""
        return bool((self.tally.prompts >= PROMPTS).any())


def shares_of(files: int) -> int:
    """Return among how many files the evidence is shared: a power of two, so that one file more changes nothing."""
    return min(MOST_SHARES, 1 << max(0, files.bit_length() - 1))


def evidence_from(files: int) -> int:
    """Return n, if every n-th file gives evidence."""
    return max(1, files // MOST_SHARES)


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
    columns = KNOWN if export.sample is None else MEASURED
    batches = export.read(file, faults, numbers, columns, part)
    looked_at = (
        None if export.sample is None else export.sample(file, settings.evidence_tokens // shares, numbers, part)
    )
    found = read_part(watched(batches), file, settings, faults, looked_at, shares)
    return replace(found, names=numbers.names)


def read_part(
    batches: Iterable[TokenBatch],
    path: Path,
    settings: CompareSettings,
    faults: Faults,
    sample: Iterable[TokenBatch] | None = None,
    shares: int = 1,
) -> LogPart:
    """Read a part once. faults: of its reader. sample: its sequences with all columns, where `batches` has only some.

    shares: how many parts hold the evidence together.
    """
    summed = RunningTally(2 * PROMPTS, settings=settings.objective)
    sampled = SequenceSample(settings.evidence_tokens // shares)
    siblings, unscored = SiblingGroups(HELD_TOKENS // shares), SiblingGroups(HELD_TOKENS // shares)
    alignment, counted, found = AlignmentReport(0, 0), Counts(), Faults()
    for chunk in parallel_map(lambda batch: _chunk(batch, path, settings, summed), batches):
        found.extend(chunk.faults)
        counted += chunk.counts
        if chunk.scored is not None:
            # Where a sample is read, the beginning stands in for one without a usable sequence.
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
    whole.extend(found)
    evidence, unlooked = _looked_at(sample, sampled, path, settings)
    return LogPart(counted, whole, alignment, summed.compact(), evidence, unlooked, siblings, unscored)


@dataclass(frozen=True, eq=False)
class _Chunk:
    """What one batch adds. scored: its sound sequences that have a trainer logprob; unscored: all that count, where
    none has."""

    faults: Faults
    counts: Counts
    scored: TokenBatch | None = None
    alignment: AlignmentReport | None = None
    tally: PartTally | None = None
    unscored: TokenBatch | None = None


def _chunk(read: TokenBatch, path: Path, settings: CompareSettings, summed: RunningTally) -> _Chunk:
    faults = Faults()
    batch = sound(read, path, faults, settings.trainer_excludes)
    counts = Counts(batch.tokens, batch.sequences, uncounted_tokens=int(batch.tokens - batch.counts_T.sum()))
    if not batch.sequences:
        return _Chunk(faults, counts)
    scored_S = np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) > 0
    if not scored_S.all():
        wanted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64) > 0
        counts += Counts(unscored_sequences=int((wanted_S & ~scored_S).sum()))
        if not scored_S.any():
            return _Chunk(faults, counts, unscored=batch.take(np.flatnonzero(wanted_S)) if wanted_S.any() else None)
        batch = batch.take(np.flatnonzero(scored_S))
    found = alignment_report(batch)
    counts += Counts(misaligned=Counter(one.kind.value for one in found.misaligned))
    aligned = batch
    if found.misaligned:
        kept = np.setdiff1d(np.arange(batch.sequences), [one.sequence for one in found.misaligned])
        if not kept.size:
            return _Chunk(faults, counts, batch, found)
        aligned = batch.take(kept)
    pairs = aligned.pairs()
    if settings.trainer_excludes:
        possible_T = np.isfinite(pairs.trainer_logprobs_T)
        counts += Counts(impossible_tokens=int(pairs.tokens - possible_T.sum()))
        pairs = pairs if possible_T.all() else pairs.keep(possible_T)
    if not pairs.tokens:
        return _Chunk(faults, counts, batch, found)
    counts += Counts(compared_tokens=pairs.tokens, shortest_sequence=int(pairs.sequence_lengths_S.min()))
    return _Chunk(faults, counts, batch, found, summed.part(pairs))


def _looked_at(
    sample: Iterable[TokenBatch] | None, sampled: SequenceSample, path: Path, settings: CompareSettings
) -> tuple[TokenBatch | None, Faults]:
    if sample is None:
        return sampled.batch(), Faults()
    found = Faults()
    parts = [sound(part, path, found, settings.trainer_excludes) for part in sample]
    parts = [part for part in parts if part.sequences and part.comparable_T.any()]
    # What the stream reads too, it has counted already.
    return concatenate(parts) if parts else sampled.batch(), found.without(MEASURED)


def added(so_far: AlignmentReport, found: AlignmentReport) -> AlignmentReport:
    """Add two reports. The first NAMED shifted sequences keep their names: names of millions would fill the memory."""
    both = so_far + found
    return both if len(both.misaligned) <= NAMED else replace(both, misaligned=both.misaligned[:NAMED])
