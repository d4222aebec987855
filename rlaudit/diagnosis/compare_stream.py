"""One pass over a token table: broken and shifted sequences are set aside, everything else is summed and sampled."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.diagnosis.comparison import CompareSettings, Counts
from rlaudit.errors import NotFinished
from rlaudit.measurement.measure import Tally
from rlaudit.measurement.running_tally import PartTally, RunningTally
from rlaudit.tokens.alignment import AlignmentReport, alignment_report
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.parallel_map import parallel_map
from rlaudit.tokens.prompt_numbers import PROMPTS
from rlaudit.tokens.sequence_sample import SequenceSample
from rlaudit.tokens.sibling_groups import SiblingGroups
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch

NAMED = 20


@dataclass(frozen=True, eq=False)
class Streamed:
    """Sums of the comparable tokens of aligned sequences; a sample of all sound ones, shifted or not.

    groups: samples of one prompt, and the number of each one's group (`tokens/sibling_groups.py`).
    """

    tally: Tally
    alignment: AlignmentReport
    sample: TokenBatch
    counts: Counts
    share: DataShare
    groups: tuple[TokenBatch, Integers] | None


@dataclass(frozen=True, eq=False)
class Unscored:
    """Rollouts of which no trainer said anything, and their groups of samples."""

    counts: Counts
    share: DataShare
    groups: tuple[TokenBatch, Integers]


def stream(batches: Iterable[TokenBatch], path: Path, faults: Faults, settings: CompareSettings) -> Streamed | Unscored:
    """Read everything once. Raises NotFinished where no token can be compared, and no samples with each other."""
    summed = RunningTally(PROMPTS, settings=settings.objective)
    sampled = SequenceSample(settings.evidence_tokens)
    alignment = AlignmentReport(0, 0)
    counted = Counts()
    siblings, unscored = SiblingGroups(), SiblingGroups()
    for part in parallel_map(lambda batch: _part(batch, path, settings, summed), batches):
        faults.extend(part.faults)
        counted += part.counts
        if part.scored is not None:
            sampled.add(part.scored)
            siblings.add(part.scored)
        if part.unscored is not None:
            unscored.add(part.unscored)
        if part.alignment is not None:
            alignment = _added(alignment, part.alignment)
        if part.tally is not None:
            summed.add(part.tally)
    sample = sampled.batch()
    if sample is None:
        groups = unscored.groups()
        if groups is None:
            raise nothing_to_compare(counted, faults)
        tokens = counted.tokens - counted.uncounted_tokens
        share = DataShare(
            counted.sequences, faults.sequences_left_out, tokens, faults.tokens_left_out, unread=faults.unread
        )
        return Unscored(counted, share, groups)
    if counted.unscored_sequences:
        said = (
            f"{counted.unscored_sequences} of {counted.sequences} sequences have no trainer logprob, the others have: "
            "they are in no figure"
        )
        faults.add(Fault(path, FaultKind.UNSCORED, said), sequences=counted.unscored_sequences)
    tally = summed.tally()
    return Streamed(tally, alignment, sample, counted, _share(tally, counted, faults), siblings.groups())


@dataclass(frozen=True, eq=False)
class _Part:
    """What one batch adds. scored: its sound sequences that have a trainer logprob; unscored: all that count, where
    none has."""

    faults: Faults
    counts: Counts
    scored: TokenBatch | None = None
    alignment: AlignmentReport | None = None
    tally: PartTally | None = None
    unscored: TokenBatch | None = None


def _part(read: TokenBatch, path: Path, settings: CompareSettings, summed: RunningTally) -> _Part:
    faults = Faults()
    batch = sound(read, path, faults, settings.trainer_excludes)
    counts = Counts(batch.tokens, batch.sequences, uncounted_tokens=int(batch.tokens - batch.counts_T.sum()))
    if not batch.sequences:
        return _Part(faults, counts)
    scored_S = np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) > 0
    if not scored_S.all():
        wanted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64) > 0
        counts += Counts(unscored_sequences=int((wanted_S & ~scored_S).sum()))
        if not scored_S.any():
            return _Part(faults, counts, unscored=batch.take(np.flatnonzero(wanted_S)) if wanted_S.any() else None)
        batch = batch.take(np.flatnonzero(scored_S))
    found = alignment_report(batch)
    counts += Counts(misaligned=Counter(one.kind.value for one in found.misaligned))
    aligned = batch
    if found.misaligned:
        kept = np.setdiff1d(np.arange(batch.sequences), [one.sequence for one in found.misaligned])
        if not kept.size:
            return _Part(faults, counts, batch, found)
        aligned = batch.take(kept)
    pairs = aligned.pairs()
    if settings.trainer_excludes:
        possible_T = np.isfinite(pairs.trainer_logprobs_T)
        counts += Counts(impossible_tokens=int(pairs.tokens - possible_T.sum()))
        pairs = pairs if possible_T.all() else pairs.keep(possible_T)
    if not pairs.tokens:
        return _Part(faults, counts, batch, found)
    counts += Counts(compared_tokens=pairs.tokens, shortest_sequence=int(pairs.sequence_lengths_S.min()))
    return _Part(faults, counts, batch, found, summed.part(pairs))


def _share(tally: Tally, counted: Counts, faults: Faults) -> DataShare:
    """What the figures rest on, of all that was given."""
    return DataShare(
        sequences=int(tally.sequences_P.sum()),
        sequences_left_out=faults.sequences_left_out + sum(counted.misaligned.values()),
        tokens=counted.compared_tokens,
        tokens_left_out=faults.tokens_left_out + counted.tokens - counted.uncounted_tokens - counted.compared_tokens,
        unread=faults.unread,
    )


def _added(so_far: AlignmentReport, found: AlignmentReport) -> AlignmentReport:
    """Both; the first NAMED shifted sequences by name, because names of millions would grow with the file."""
    both = so_far + found
    return both if len(both.misaligned) <= NAMED else replace(both, misaligned=both.misaligned[:NAMED])


def nothing_to_compare(counts: Counts, faults: Faults) -> NotFinished:
    """Why a table cannot be judged."""
    if counts.unscored_sequences:
        return NotFinished(
            f"none of {counts.sequences} sequences has a trainer logprob: there is nothing to compare with",
            "give the trainer's table as second argument, or --score MODEL; or the token ids of several samples per "
            "prompt, which tell whether the report is honest",
        )
    first = f"; the first fault: {faults.shown[0]}" if faults.shown else ""
    if counts.uncounted_tokens and counts.uncounted_tokens == counts.tokens:
        first = f": the loss mask counts none of {counts.tokens} tokens"
    return NotFinished(f"there is no sequence to compare{first}")
