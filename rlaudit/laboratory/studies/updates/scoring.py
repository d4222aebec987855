"""Scores of every sampled sequence under the trainer's version and under each that should have sampled its tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.laboratory.scoring import SequenceKey
from rlaudit.laboratory.studies.updates.cases import BEFORE, COLD, COLD_AFTER, FLIGHT
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight
from rlaudit.laboratory.weight_path import ADAPTER
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure
from rlaudit.tokens.pairs import LogprobPairs


@dataclass(frozen=True)
class Scorebook:
    """Logprobs by checkpoint and sequence.

    A checkpoint is named by its version ("1") or by the mixture that an engine really held.
    """

    scores: dict[str, dict[SequenceKey, Floats]]
    # What one engine held as version 1: it, a mixture, or the model with an adapter.
    held: str = "1"

    def has(self, checkpoint: str, flight: Flight) -> bool:
        """Return whether the request was scored with it."""
        return (flight.prompt_token_ids, flight.token_ids) in self.scores.get(checkpoint, {})

    def logprobs(self, checkpoint: str, flight: Flight) -> Floats:
        """Return trainer logprobs of the request's tokens under a checkpoint; NaN if they were not scored."""
        if not self.has(checkpoint, flight):
            return np.full(len(flight.token_ids), np.nan)
        return self.scores[checkpoint][flight.prompt_token_ids, flight.token_ids]

    def under_own_versions(self, flight: Flight) -> Floats:
        """Return trainer logprobs, each token's with the weights that the engine held then; NaN if unknown."""
        result_T = np.full(len(flight.token_ids), np.nan)
        for version in {version for version in flight.versions if version is not None}:
            of_version_T = np.array([sampled_by == version for sampled_by in flight.versions])
            logprobs_T = self.logprobs(self.held if version == 1 else str(version), flight)
            result_T[of_version_T] = logprobs_T[of_version_T]
        return result_T


def wanted_scores(record: EngineRecord) -> Iterator[tuple[str, Flight]]:
    """Yield checkpoint and request of every score that the analysis of one engine start needs."""
    for flight in record.flights:
        if flight.run == COLD:
            continue  # it fills the cache: no figure is taken from it
        sampled = {version for version in flight.versions if version is not None}
        names = {record.held if version == 1 else str(version) for version in sampled}
        if flight.run == FLIGHT:
            # And as a trainer scores them a step later.
            names |= {str(flight.trainer_version), record.held}
        if flight.run == COLD_AFTER:
            # The weights that should be in force, and the old ones: scale of an excess, and witnesses of parts.
            names |= {"0"} if record.start.path == ADAPTER else {"0", *map(str, sampled)}
        yield from ((name, flight) for name in names)


def pairs_of(
    flights: Sequence[Flight],
    trainer_logprobs: Callable[[Flight], Floats],
    keep: Callable[[Flight], Sequence[bool] | None] = lambda flight: None,
) -> LogprobPairs:
    """Return flat rollout and trainer logprobs of requests, without tokens that have no score or are not kept."""
    rollout, trainer, sequence = [], [], []
    prompts: list[int] = []
    for flight in flights:
        scored_T = trainer_logprobs(flight)
        kept_T = np.isfinite(scored_T)
        chosen = keep(flight)
        if chosen is not None:
            kept_T &= np.asarray(chosen, dtype=bool)
        if not kept_T.any():
            continue
        rollout.append(np.asarray(flight.logprobs, dtype=np.float64)[kept_T])
        trainer.append(scored_T[kept_T])
        sequence.append(np.full(int(kept_T.sum()), len(prompts)))
        prompts.append(flight.prompt)
    empty = np.zeros(0)
    return LogprobPairs(
        rollout_logprobs_T=np.concatenate(rollout) if rollout else empty,
        trainer_logprobs_T=np.concatenate(trainer) if trainer else empty,
        sequence_T=np.concatenate(sequence) if sequence else empty.astype(np.int64),
        prompt_S=np.array(prompts, dtype=np.int64),
    )


def k3_of(pairs: LogprobPairs) -> Measurement | None:
    """Return k3 in nats with its interval over prompts; None without a token."""
    return measure(pairs, metrics=[all_metrics()["k3"]])["k3"] if pairs.tokens else None


def fit_margin(flights: Sequence[Flight], book: Scorebook, margin: float) -> float:
    """Return k3 in nats below which tokens fit their weights: `margin` above the upper end of k3 before the update.

    The distance of engine and trainer before any update is not the update's: in float32 nothing (1e-10 nats of k3), in
    bfloat16 about 2e-3, above any useful margin.
    """
    before = [flight for flight in flights if flight.run in (BEFORE, FLIGHT) and flight.error is None]
    pairs = pairs_of(
        before,
        lambda flight: book.logprobs("0", flight),
        lambda flight: [version == 0 for version in flight.versions],
    )
    floor = k3_of(pairs)
    return margin if floor is None else margin + max(floor.high or 0.0, floor.value or 0.0)
