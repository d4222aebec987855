"""All that one comparison is judged by, gathered once: figures of every token, and the columns of a sample of them.

No layer is judged here. Judges read tokens through this record alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.distance import METRIC, USUAL, Candidate, Distance, Reference, judge_distance
from rlaudit.diagnosis.objective_split import ObjectiveSplit, objective_split
from rlaudit.diagnosis.read_log import Counts, ReadLog, nothing_to_compare
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.from_siblings import Siblings, siblings_of
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.token_evidence import TokenEvidence, token_evidence
from rlaudit.recording.recorded_weights import RecordedWeights
from rlaudit.statistics.measurement.measure import Measurement, Tally, measure_tally
from rlaudit.tokens.alignment import AlignmentReport, alignment_report
from rlaudit.tokens.complete import complete
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.token_batch import TokenBatch

ENTROPY = "trainer_entropy"
# Chance of a fault that is in no part of a sample.
MISSED = 0.05

# Sequences that the trainer scored under other meanings, their scores, and how far the trainer is from itself when only
# its micro-batches change (k3, nats).
Scored = tuple[TokenBatch, ScoredTokens, float]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was gathered of one table. Rollouts that no trainer has scored have siblings alone."""

    name: str
    # What tokens were asked to be sampled from.
    sampling: Semantics
    # What the trainer takes them to be sampled from.
    trainer: Semantics
    settings: CompareSettings
    counts: Counts
    # The part of the table that figures are of.
    share: DataShare
    # The part of the sample in which causes are searched for.
    looked_at: DataShare
    # Samples of one prompt, if the trainer's scores do not say more.
    siblings: Siblings | None
    # Of the whole table, as in `tokens`.
    alignment: AlignmentReport = field(default_factory=lambda: AlignmentReport(0))
    measurements: Mapping[str, Measurement] = field(default_factory=lambda: MappingProxyType({}))
    # What `measurements` are made of.
    tally: Tally | None = None
    distance: Distance | None = None
    tokens: TokenEvidence | None = None
    split: ObjectiveSplit | None = None
    # Of the engine, as far as they were read.
    weights: RecordedWeights | None = None
    # What the columns of the sample lack, in sentences.
    gaps: tuple[str, ...] = ()
    # Why the trainer's entropies that were logged are not used, "" if they are or were not.
    entropy_left_out: str = ""
    # The name of today's engine, if no trainer scored its tokens: nothing can be compared with it.
    unscored_today: str | None = None


@dataclass(frozen=True, eq=False)
class Today:
    """What was measured of the engine that runs today, and whether its logprobs mean what the trainer assumes."""

    name: str
    measurements: Mapping[str, Measurement]
    # None if no trainer has scored its tokens.
    tally: Tally | None
    semantic: Verdict
    # Its k2 (nats^2) unless it has a mismatch of its own: how much rounding is usual here.
    floor_k2: float | None


def gather(
    log: ReadLog,
    sampling: Semantics,
    trainer: Semantics,
    settings: CompareSettings,
    *,
    name: str = "",
    faults: Faults,
    scored: Scored | None = None,
    before: Today | None = None,
    weights: RecordedWeights | None = None,
) -> Evidence:
    """Gather the evidence of a log.

    sampling: as requested of the engine. trainer: what the trainer takes tokens to be sampled from. faults: of the
    sample are added to them. weights: of the engine, as far as they were read.

    Raises NotFinished if no token can be compared, and no samples with each other.
    """
    of_log = partial(Evidence, name, sampling, trainer, settings, log.counts, log.share)
    unused = settings.first_look.unused.get(ENTROPY, "")
    if log.tally is None or log.sample is None:
        siblings = siblings_of(log.groups, settings.first_look.ends_missing)
        if siblings is None:
            raise nothing_to_compare(log.counts, faults, settings)
        return of_log(log.share, siblings, gaps=settings.first_look.said, entropy_left_out=unused)
    measurements = measure_tally(log.tally, settings.replicates, settings.seed)
    if scored is not None:
        # The scores are of these sequences, all of them.
        batch, gaps = complete(scored[0], sequences_may_go=False)
        looked_at = DataShare(batch.sequences, 0, batch.tokens, 0)
    else:
        faults.extend(log.unlooked.of_a_sample())
        batch, gaps = complete(log.sample)
        left_out = log.unlooked
        looked_at = DataShare(
            log.sample.sequences, left_out.sequences_left_out, log.sample.tokens, left_out.tokens_left_out
        )
    tokens = token_evidence(
        batch,
        sampling=sampling,
        trainer=trainer,
        scored=None if scored is None else scored[1],
        meaning=None if scored is None else identify(scored[1], sampling, trainer, scored[2], settings.seed),
        floor_k2=None if before is None else before.floor_k2,
        alignment=log.alignment,
        most_tokens=settings.evidence_tokens,
        placed=settings.first_look.placed,
        mask_off=settings.first_look.mask_off,
        ends_missing=settings.first_look.ends_missing,
    )
    searched = len(tokens.cluster_S)
    if scored is None and searched < log.share.sequences:
        missable = _missable(searched, log.sampled_files)
        looked_at = replace(looked_at, sample_of=log.counts.sequences, missable=missable)
    return of_log(
        looked_at,
        siblings=siblings_of(log.groups, settings.first_look.ends_missing) if scored is None else None,
        alignment=log.alignment,
        measurements=measurements,
        tally=log.tally,
        distance=_distance(log.tally, log.counts, measurements, settings, before),
        tokens=tokens,
        split=_split(batch, settings),
        weights=weights,
        gaps=(*settings.first_look.said, *gaps),
        entropy_left_out=unused or _gap_in_entropy(log.sample, batch),
        unscored_today=before.name if before is not None and before.tally is None else None,
    )


def _gap_in_entropy(logged: TokenBatch, used: TokenBatch) -> str:
    gone = ENTROPY in logged.token_columns and ENTROPY not in used.token_columns
    return "too many sequences have a gap in it" if gone else ""


def _missable(sequences: int, files: int | None) -> float:
    """Return the largest share of sequences, or of files, that may have a fault and not be among these."""
    return float(1.0 - MISSED ** (1.0 / max(1, sequences if files is None else min(sequences, files))))


def _distance(
    tally: Tally,
    counts: Counts,
    measurements: Mapping[str, Measurement],
    settings: CompareSettings,
    before: Today | None,
) -> Distance:
    # Logs do not name their dtype: the range of the coarsest one counts as usual.
    usual = USUAL[-1]
    reference = None
    if before is not None and before.tally is not None:
        serves = before.semantic is not Verdict.MISMATCH
        reference = Reference(before.name, before.measurements[METRIC], before.tally, before.semantic, serves, usual)
    candidate = Candidate(measurements, tally, counts.shortest_sequence, usual=usual)
    return judge_distance(
        candidate, settings.objective, settings.margin, reference, replicates=settings.replicates, seed=settings.seed
    )


def _split(batch: TokenBatch, settings: CompareSettings) -> ObjectiveSplit | None:
    """Return the split ratio of aligned sequences; None if no sequence is left."""
    alignment = alignment_report(batch)
    kept = np.setdiff1d(np.arange(batch.sequences), [sequence.sequence for sequence in alignment.misaligned])
    aligned = batch if kept.size == batch.sequences else batch.take(kept)
    finite_T = aligned.comparable_T & np.isfinite(aligned.trainer_logprobs_T)
    return objective_split(aligned, settings.objective, settings.seed) if finite_T.any() else None
