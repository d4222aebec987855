"""One pass over a token table: broken and shifted sequences are set aside, everything else is summed and sampled."""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlaudit.diagnosis.comparison import CompareSettings, Counts
from rlaudit.errors import NotFinished
from rlaudit.mismatch.alignment import AlignmentReport, alignment_report
from rlaudit.mismatch.evidence import Tally
from rlaudit.mismatch.running_tally import RunningTally
from rlaudit.token_table.fault import Fault, Faults
from rlaudit.token_table.prompt_numbers import PROMPTS
from rlaudit.token_table.sequence_sample import SequenceSample
from rlaudit.token_table.sound import sound
from rlaudit.token_table.token_batch import TokenBatch

NAMED = 20


@dataclass(frozen=True, eq=False)
class Streamed:
    """Sums of the comparable tokens of aligned sequences; a sample of all sound ones, shifted or not."""

    tally: Tally
    alignment: AlignmentReport
    sample: TokenBatch
    counts: Counts


def stream(batches: Iterable[TokenBatch], path: Path, faults: Faults, settings: CompareSettings) -> Streamed:
    """Read everything once. Raises NotFinished where no token can be compared."""
    summed = RunningTally(PROMPTS, settings=settings.objective)
    sampled = SequenceSample(settings.evidence_tokens)
    alignment = AlignmentReport(0, 0)
    misaligned: Counter[str] = Counter()
    tokens = sequences = unscored = uncounted = impossible = 0
    shortest = sys.maxsize
    for read in batches:
        batch = sound(read, path, faults, settings.trainer_excludes)
        if not batch.sequences:
            continue
        tokens += batch.tokens
        sequences += batch.sequences
        uncounted += int(batch.tokens - batch.counts_T.sum())
        scored_S = np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) > 0
        if not scored_S.all():
            wanted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64) > 0
            unscored += int((wanted_S & ~scored_S).sum())
            if not scored_S.any():
                continue
            batch = batch.take(np.flatnonzero(scored_S))
        sampled.add(batch)
        found = alignment_report(batch)
        alignment = _added(alignment, found)
        if found.misaligned:
            misaligned.update(one.kind.value for one in found.misaligned)
            kept = np.setdiff1d(np.arange(batch.sequences), [one.sequence for one in found.misaligned])
            if not kept.size:
                continue
            batch = batch.take(kept)
        pairs = batch.pairs(PROMPTS)
        if settings.trainer_excludes:
            possible_T = np.isfinite(pairs.trainer_logprobs_T)
            impossible += int(pairs.tokens - possible_T.sum())
            pairs = pairs if possible_T.all() else pairs.keep(possible_T)
        if pairs.tokens:
            summed.add(pairs)
            shortest = min(shortest, int(pairs.sequence_lengths_S.min()))
    sample = sampled.batch()
    if sample is None:
        raise _nothing(sequences, unscored, faults)
    if unscored:
        said = f"{unscored} of {sequences} sequences have no trainer logprob, the others have: they are in no figure"
        faults.add(Fault(path, said), sequences=unscored)
    counts = Counts(tokens, sequences, summed.tokens, unscored, uncounted, impossible, dict(misaligned), shortest)
    return Streamed(summed.tally(), alignment, sample, counts)


def _added(so_far: AlignmentReport, found: AlignmentReport) -> AlignmentReport:
    """Both; the first NAMED shifted sequences by name, because names of millions would grow with the file."""
    both = so_far + found
    return both if len(both.misaligned) <= NAMED else replace(both, misaligned=both.misaligned[:NAMED])


def _nothing(sequences: int, unscored: int, faults: Faults) -> NotFinished:
    if unscored:
        return NotFinished(
            f"none of {sequences} sequences has a trainer logprob: there is nothing to compare with",
            "give the trainer's table as second argument, or --score MODEL",
        )
    first = f"; the first fault: {faults.shown[0]}" if faults.shown else ""
    return NotFinished(f"there is no sequence to compare{first}")
