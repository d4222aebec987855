"""The tokens of one case, with the logprobs that a trainer has of them under each version of the weights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.laboratory.scoring import SequenceKey
from rlaudit.laboratory.studies.updates.cases import BEFORE, COLD, COLD_AFTER, FLIGHT
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight
from rlaudit.laboratory.weight_path import ADAPTER
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure
from rlaudit.tokens.pairs import LogprobPairs

# Logprobs by checkpoint and sequence. A checkpoint is named by its version ("1"), or by what an engine really held.
Scores = Mapping[str, Mapping[SequenceKey, Floats]]
Mask = NDArray[np.bool_]


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


@dataclass(frozen=True)
class ScoredTokens:
    """The requests of a case token by token (_T); what is not known of a token is NaN."""

    flights: Sequence[Flight]
    scores: Scores
    # What the engine held as version 1: it, a mixture, or the model with an adapter.
    held: str = "1"

    @cached_property
    def sequence_T(self) -> Integers:
        """The place of each token's request."""
        return np.repeat(np.arange(len(self.flights)), [len(flight.token_ids) for flight in self.flights])

    @cached_property
    def rollout_logprobs_T(self) -> Floats:
        """What the engine returned."""
        return _joined([flight.logprobs for flight in self.flights])

    @cached_property
    def version_T(self) -> Floats:
        """The version of the weights that sampled each token; NaN if it came while the update ran."""
        return _joined([[np.nan if v is None else v for v in flight.versions] for flight in self.flights])

    @cached_property
    def trainer_version_T(self) -> Integers:
        """The version that the trainer holds when it gets the sequence."""
        return np.array([flight.trainer_version for flight in self.flights], dtype=np.int64)[self.sequence_T]

    @cached_property
    def late_T(self) -> Mask:
        """Whether a token surely came from newer weights than those in force when its request was submitted."""
        submitted_T = np.array([flight.submitted for flight in self.flights])[self.sequence_T]
        late_T: Mask = np.isfinite(self.version_T) & (self.version_T != submitted_T)
        return late_T

    @cached_property
    def right_T(self) -> Floats:
        """Trainer logprobs, each token's with the weights that the engine held then."""
        return self._under_each(self.version_T, {1: self.held})

    @cached_property
    def trainer_T(self) -> Floats:
        """Trainer logprobs with the weights that the trainer holds when it gets the sequence."""
        return self._under_each(self.trainer_version_T, {})

    def _under_each(self, version_T: Floats | Integers, names: Mapping[int, str]) -> Floats:
        result_T = np.full(len(version_T), np.nan)
        for version in map(int, np.unique(version_T[np.isfinite(version_T)])):
            of_version_T = version_T == version
            result_T[of_version_T] = self.under(names.get(version, str(version)))[of_version_T]
        return result_T

    def under(self, checkpoint: str) -> Floats:
        """Return trainer logprobs of all tokens under a checkpoint."""
        scored = self.scores.get(checkpoint, {})
        keys = [(flight.prompt_token_ids, flight.token_ids) for flight in self.flights]
        return _joined([scored.get(key, np.full(len(key[1]), np.nan)) for key in keys])

    def of(self, *runs: str) -> Mask:
        """Return whether each token is of one of these runs, and of a request that did not fail."""
        chosen = [flight.run in runs and flight.error is None for flight in self.flights]
        return np.array(chosen, dtype=bool)[self.sequence_T]

    def pairs(self, kept_T: Mask, trainer_T: Floats) -> LogprobPairs:
        """Return rollout and trainer logprobs of the tokens that are kept and have a score."""
        kept_T = kept_T & np.isfinite(trainer_T)
        places, sequence_T = np.unique(self.sequence_T[kept_T], return_inverse=True)
        return LogprobPairs(
            rollout_logprobs_T=self.rollout_logprobs_T[kept_T],
            trainer_logprobs_T=trainer_T[kept_T],
            sequence_T=sequence_T,
            prompt_S=np.array([self.flights[place].prompt for place in places], dtype=np.int64),
        )

    def k3(self, kept_T: Mask, trainer_T: Floats) -> Measurement | None:
        """Return k3 in nats with its interval over prompts; None without a token."""
        pairs = self.pairs(kept_T, trainer_T)
        return measure(pairs, metrics=[all_metrics()["k3"]])["k3"] if pairs.tokens else None

    def fit_margin(self, margin: float) -> float:
        """Return k3 in nats below which tokens fit their weights: `margin` above that before the update.

        The distance of engine and trainer before any update is not the update's: in float32 nothing (1e-10 nats of k3),
        in bfloat16 about 2e-3, above any useful margin. The upper end of its interval counts.
        """
        before = self.k3(self.of(BEFORE, FLIGHT) & (self.version_T == 0), self.under("0"))
        return margin if before is None else margin + max(before.high or 0.0, before.value or 0.0)


def _joined(of_flights: Sequence[Sequence[float] | Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *(np.asarray(values, dtype=np.float64) for values in of_flights)])
