"""Logged rollout logprobs against trainer logprobs: figures of every token, and the three layers in their order.

Covered: any token table (`rlaudit/token_table`), in memory that does not grow with it. Figures and their intervals are
of all comparable tokens; causes are looked for in a sample of whole sequences spread over the table.
Not covered: what nobody logged. Every comparison says what its columns cannot tell.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rlaudit.diagnosis.compare_objective import judge_objective
from rlaudit.diagnosis.compare_path import judge_path
from rlaudit.diagnosis.compare_semantics import judge_semantics, not_told
from rlaudit.diagnosis.compare_stream import Streamed, stream
from rlaudit.diagnosis.comparison import CompareSettings, Comparison
from rlaudit.diagnosis.objective_split import ObjectiveSplit, objective_split
from rlaudit.layers import Verdict
from rlaudit.mismatch.alignment import AlignmentReport, alignment_report
from rlaudit.mismatch.attribute import attribute
from rlaudit.mismatch.candidates import Semantics
from rlaudit.mismatch.evidence import measure_tally
from rlaudit.mismatch.scored_tokens import ScoredTokens
from rlaudit.mismatch.semantics import identify
from rlaudit.mismatch.token_evidence import token_evidence
from rlaudit.token_table.fault import Faults
from rlaudit.token_table.token_batch import TokenBatch, concatenate

HERE = Path("tokens")


def compare(
    batches: Iterable[TokenBatch],
    sampling: Semantics,
    trainer: Semantics,
    settings: CompareSettings | None = None,
    *,
    name: str = "",
    path: Path = HERE,
    faults: Faults | None = None,
    sample: Iterable[TokenBatch] | None = None,
    scored: tuple[TokenBatch, ScoredTokens, float] | None = None,
    notes: tuple[str, ...] = (),
) -> Comparison:
    """Compare one table.

    sampling: what tokens were asked to be sampled from. trainer: what the trainer takes them to be sampled from.
    faults: where broken sequences are noted. sample: sequences with all columns, where `batches` has only some.
    scored: sequences with the trainer's scores under other meanings, which identify what the logprobs mean, and how far
    the trainer is from itself when only its micro-batches change (k3, nats).
    Raises NotFinished where no token can be compared.
    """
    settings = settings or CompareSettings()
    faults = faults or Faults()
    streamed = stream(batches, path, faults, settings)
    measurements = measure_tally(streamed.tally, settings.replicates, settings.seed)
    batch = _evidence_batch(streamed, sample, scored)
    semantics = None
    if scored is not None:
        semantics = identify(scored[1], sampling, trainer, scored[2], settings.seed)
    alignment = alignment_report(batch)
    evidence = token_evidence(
        batch,
        sampling=sampling,
        trainer=trainer,
        scored=scored[1] if scored is not None else None,
        semantics=semantics,
        alignment=alignment,
        floor_k2=settings.floor_k2,
        most_tokens=settings.evidence_tokens,
    )
    # A measured floor says what parity is; without one it is the margin of the verdict.
    margin = settings.margin if settings.floor_k2 is None else None
    attribution = attribute(evidence, margin, settings.seed)
    semantic = judge_semantics(evidence, attribution, semantics, measurements["mean_ratio_minus_one"])
    inference = judge_path(measurements["k3"], attribution, semantic, settings.margin, semantics is not None)
    split = _split(batch, alignment, (semantic.verdict, inference.verdict), settings)
    objective = judge_objective(
        measurements, split, (semantic, inference), settings.objective, streamed.counts.shortest_sequence
    )
    return Comparison(
        name=name,
        counts=streamed.counts,
        sampling=sampling,
        trainer=trainer,
        measurements=measurements,
        alignment=streamed.alignment,
        semantics=semantics,
        attribution=attribution,
        split=split,
        evidence_tokens=evidence.tokens,
        layers=(semantic, inference, objective),
        notes=notes,
        not_seen=(*_left_out(streamed), *not_told(evidence, semantics)),
    )


def _evidence_batch(
    streamed: Streamed, sample: Iterable[TokenBatch] | None, scored: tuple[TokenBatch, ScoredTokens, float] | None
) -> TokenBatch:
    if scored is not None:
        return scored[0]
    parts = [] if sample is None else [part for part in sample if part.sequences]
    return concatenate(parts) if parts else streamed.sample


def _split(
    batch: TokenBatch, alignment: AlignmentReport, earlier: tuple[Verdict, Verdict], settings: CompareSettings
) -> ObjectiveSplit | None:
    """The ratio of aligned sequences taken apart; None where nothing is left to take apart."""
    kept = np.setdiff1d(np.arange(batch.sequences), [one.sequence for one in alignment.misaligned])
    aligned = batch if kept.size == batch.sequences else batch.take(kept)
    finite_T = aligned.comparable_T & np.isfinite(aligned.trainer_logprobs_T)
    return objective_split(aligned, earlier, settings.objective, settings.seed) if finite_T.any() else None


def _left_out(streamed: Streamed) -> tuple[str, ...]:
    """Tokens that are in no figure."""
    counts = streamed.counts
    lines = []
    if counts.misaligned:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.misaligned.items()))
        lines.append(f"sequences whose two sides do not meet are in no figure: {kinds}")
    if counts.uncounted_tokens:
        lines.append(f"{counts.uncounted_tokens} of {counts.tokens} tokens are not counted by the loss mask")
    if counts.impossible_tokens:
        lines.append(
            f"{counts.impossible_tokens} tokens lie outside what the trainer's filters keep; they have no ratio"
        )
    return tuple(lines)
