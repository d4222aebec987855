"""Logged rollout logprobs against trainer logprobs: figures of every token, and the three layers in their order.

Covered: any token table (`rlaudit/tokens`), in memory that does not grow with it. Figures and their intervals are
of all comparable tokens; causes are looked for in a sample of whole sequences spread over the table.
Not covered: what was not logged. Every comparison says what its columns cannot tell.

Rollouts that no trainer has scored are judged in the first layer alone, by samples of one prompt.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from rlaudit.attribution.attribute import DEFAULT_MARGIN, attribute
from rlaudit.diagnosis.compare_stream import Streamed, Unscored, nothing_to_compare, together
from rlaudit.diagnosis.comparison import CompareSettings, Comparison
from rlaudit.diagnosis.distance import METRIC, USUAL, Candidate, Distance, Reference, Yardstick, judge_distance
from rlaudit.diagnosis.inference_path import judge_path
from rlaudit.diagnosis.judgement import supported
from rlaudit.diagnosis.log_part import read_part
from rlaudit.diagnosis.objective import judge_objective
from rlaudit.diagnosis.objective_split import ObjectiveSplit, objective_split
from rlaudit.diagnosis.semantic import judge_meaning, judge_rollouts
from rlaudit.diagnosis.weights_and_tokens import version_gaps, with_weights
from rlaudit.layers import Layer, Verdict, untested
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_logs import meaning_of_logs
from rlaudit.meaning.from_rollouts import WITH_TRAINER, meaning_of_rollouts
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.from_siblings import siblings_of
from rlaudit.meaning.meaning import RolloutFigures
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.measurement.measure import Measurement, measure_tally
from rlaudit.recorder.recorded_weights import RecordedWeights
from rlaudit.tokens.alignment import AlignmentReport, alignment_report
from rlaudit.tokens.complete import complete
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.token_batch import TokenBatch

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
    before: Comparison | None = None,
) -> Comparison:
    """Compare one table.

    sampling: what tokens were asked to be sampled from. trainer: what the trainer takes them to be sampled from.
    faults: where broken sequences are noted. sample: sequences with all columns, where `batches` has only some.
    scored: sequences with the trainer's scores under other meanings, which identify what the logprobs mean, and how far
    the trainer is from itself when only its micro-batches change (k3, nats).
    before: the comparison of the engine that runs today, with prompts numbered alike: the inference path is held
    against it.
    Rollouts that no trainer has scored are asked what samples of one prompt show.
    Raises NotFinished if no token can be compared, and no samples with each other.
    """
    settings = settings or CompareSettings()
    faults = faults or Faults()
    part = read_part(batches, path, settings, Faults(), sample)
    streamed = together([part], path, faults, settings)
    return judge(
        streamed, sampling, trainer, settings, name=name, faults=faults, scored=scored, notes=notes, before=before
    )


def judge(
    streamed: Streamed | Unscored,
    sampling: Semantics,
    trainer: Semantics,
    settings: CompareSettings,
    *,
    name: str,
    faults: Faults,
    scored: tuple[TokenBatch, ScoredTokens, float] | None = None,
    notes: tuple[str, ...] = (),
    before: Comparison | None = None,
    weights: RecordedWeights | None = None,
) -> Comparison:
    """Judge what was read in the three layers; the arguments are those of `compare`. weights: what was read of them."""
    if isinstance(streamed, Unscored):
        alone = compare_alone(streamed, sampling, trainer, name, notes)
        if alone is None:
            raise nothing_to_compare(streamed.counts, faults)
        return alone
    measurements = measure_tally(streamed.tally, settings.replicates, settings.seed)
    distance = _distance(streamed, measurements, settings, before)
    parity_k2 = _parity_k2(distance, settings)
    batch, looked_at, gaps = _evidence_batch(streamed, scored, faults)
    meaning = None if scored is None else identify(scored[1], sampling, trainer, scored[2], settings.seed)
    alignment = alignment_report(batch)
    evidence = token_evidence(
        batch,
        sampling=sampling,
        trainer=trainer,
        scored=scored[1] if scored is not None else None,
        meaning=meaning,
        alignment=alignment,
        floor_k2=settings.floor_k2,
        most_tokens=settings.evidence_tokens,
    )
    attribution = attribute(evidence, parity_k2, settings.seed)
    ratio, corrected = measurements["mean_ratio_minus_one"], meaning is not None
    if meaning is None:
        siblings = siblings_of(streamed.groups)
        meaning = meaning_of_logs(evidence, ratio, attribution.leaning_of(Layer.SEMANTIC), siblings)
    shares = (streamed.share, looked_at)
    semantic = supported(judge_meaning(meaning, attribution, ratio), *shares)
    path = with_weights(judge_path(distance, attribution, semantic, corrected), weights, evidence, settings.seed)
    inference = supported(path, *shares)
    split = _split(batch, alignment, (semantic.verdict, inference.verdict), settings)
    objective = supported(judge_objective(measurements, split, (semantic, inference), distance), *shares)
    return Comparison(
        name=name,
        counts=streamed.counts,
        sampling=sampling,
        trainer=trainer,
        measurements=measurements,
        tally=streamed.tally,
        distance=distance,
        alignment=streamed.alignment,
        meaning=meaning,
        attribution=attribution,
        split=split,
        evidence_tokens=evidence.tokens,
        layers=(semantic, inference, objective),
        share=streamed.share,
        versions=version_gaps(evidence, weights),
        notes=notes,
        not_seen=(*_left_out(streamed), *_without_today(before), *gaps, *meaning.said.not_told),
    )


def _parity_k2(distance: Distance, settings: CompareSettings) -> float | None:
    """Return the k2 (nats^2) from which on causes are looked for; None if a measured floor says it.

    What a clip range feels may be far below what signatures were tried on: a healthy pair in float32 has a shape, too,
    and naming it would be wrong. Below DEFAULT_MARGIN it takes a margin or a reference to call something an excess.
    """
    if settings.floor_k2 is not None:
        return None
    if distance.yardstick is Yardstick.CONSEQUENCE:
        return max(distance.tolerated, DEFAULT_MARGIN)
    return distance.tolerated


def _distance(
    streamed: Streamed, measurements: Mapping[str, Measurement], settings: CompareSettings, before: Comparison | None
) -> Distance:
    # Logs do not say in which dtype they were made: what is usual of the coarsest is.
    usual = USUAL[-1]
    reference = None
    if before is not None and before.tally is not None:
        semantic = before.layers[0].verdict
        reference = Reference(
            before.name, before.measurements[METRIC], before.tally, semantic, semantic is not Verdict.MISMATCH, usual
        )
    candidate = Candidate(measurements, streamed.tally, streamed.counts.shortest_sequence, usual=usual)
    return judge_distance(
        candidate, settings.objective, settings.margin, reference, replicates=settings.replicates, seed=settings.seed
    )


def _evidence_batch(
    streamed: Streamed, scored: tuple[TokenBatch, ScoredTokens, float] | None, faults: Faults
) -> tuple[TokenBatch, DataShare, tuple[str, ...]]:
    """Sequences with all columns, where causes are looked for; how many of them were usable; and gaps, in sentences."""
    if scored is not None:
        # The scores are of these sequences, all of them.
        batch, gaps = complete(scored[0], sequences_may_go=False)
        return batch, _looked_at(batch, Faults()), gaps
    faults.extend(streamed.unlooked.of_a_sample())
    batch, gaps = complete(streamed.evidence)
    return batch, _looked_at(streamed.evidence, streamed.unlooked), gaps


def _looked_at(batch: TokenBatch, faults: Faults) -> DataShare:
    return DataShare(batch.sequences, faults.sequences_left_out, batch.tokens, faults.tokens_left_out)


def _split(
    batch: TokenBatch, alignment: AlignmentReport, earlier: tuple[Verdict, Verdict], settings: CompareSettings
) -> ObjectiveSplit | None:
    """Return the ratio of aligned sequences taken apart; None if nothing is left to take apart."""
    kept = np.setdiff1d(np.arange(batch.sequences), [one.sequence for one in alignment.misaligned])
    aligned = batch if kept.size == batch.sequences else batch.take(kept)
    finite_T = aligned.comparable_T & np.isfinite(aligned.trainer_logprobs_T)
    return objective_split(aligned, earlier, settings.objective, settings.seed) if finite_T.any() else None


def _without_today(before: Comparison | None) -> tuple[str, ...]:
    """Say so if what runs today cannot serve as a reference."""
    if before is None or before.tally is not None:
        return ()
    return (f"{before.name}: no trainer logprobs, so the inference path is not held against it",)


def _left_out(streamed: Streamed) -> tuple[str, ...]:
    """Say which tokens are in no figure."""
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


UNSCORED = "the table has no trainer logprobs"


def compare_alone(
    table: Unscored, sampling: Semantics, trainer: Semantics, name: str, notes: tuple[str, ...]
) -> Comparison | None:
    """Judge rollouts that no trainer has scored; None if no two samples of a prompt share a context."""
    siblings = siblings_of(table.groups)
    if siblings is None:
        return None
    figures = RolloutFigures(siblings, table.share.tokens, table.share.sequences)
    meaning = meaning_of_rollouts(figures, sampling, trainer)
    semantic = supported(judge_rollouts(meaning), table.share, table.share)
    return Comparison(
        name=name,
        counts=table.counts,
        sampling=sampling,
        trainer=trainer,
        measurements={},
        tally=None,
        distance=None,
        alignment=AlignmentReport(0, 0),
        meaning=meaning,
        attribution=None,
        split=None,
        evidence_tokens=table.share.tokens,
        layers=(
            semantic,
            untested(Layer.INFERENCE_PATH, UNSCORED, WITH_TRAINER),
            untested(Layer.OBJECTIVE, UNSCORED, WITH_TRAINER),
        ),
        share=table.share,
        notes=notes,
        not_seen=meaning.said.not_told,
    )
