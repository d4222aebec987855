"""Asks the trainer for scores, a job per checkpoint, and keeps what it said.

Where no read back explains why an engine's tokens do not fit the new weights, it goes on asking with mixtures until the
old parts are found (locate.py).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.laboratory.course import Course
from rlaudit.laboratory.scoring import ScoringBatch, SequenceKey
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, HONEST
from rlaudit.laboratory.studies.updates.checkpoints import CheckpointStore, tensor_names
from rlaudit.laboratory.studies.updates.engine_floor import fit_margin
from rlaudit.laboratory.studies.updates.locate import Located, locate_old, parts_in_order
from rlaudit.laboratory.studies.updates.parts import HEAD
from rlaudit.laboratory.studies.updates.plan import UpdatePlan
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook
from rlaudit.metrics.k3 import k3


class ScoreKeeper:
    """Scores by checkpoint, growing as they are asked for."""

    def __init__(self, plan: UpdatePlan, course: Course, store: CheckpointStore) -> None:
        self._margin, (self._request,) = plan.recipe.equivalence_margin, plan.scoring
        self._course, self._store = course, store
        self._scores: dict[str, dict[SequenceKey, Floats]] = {}
        self._waiting: dict[str, ScoringBatch] = {}

    @property
    def book(self) -> Scorebook:
        """Everything scored so far."""
        return Scorebook(self._scores)

    def ask(self, checkpoint: str, flights: Sequence[Flight]) -> None:
        """Ask for scores of these requests; those that are there are not asked for again."""
        book = self.book
        for flight in flights:
            # Nothing to score is not asked for.
            if flight.token_ids and not book.has(checkpoint, flight):
                batch = self._waiting.setdefault(checkpoint, ScoringBatch(self._request))
                batch.add(flight.prompt_token_ids, flight.token_ids)

    def score(self) -> None:
        """Run a job for every checkpoint that was asked for. Raises NotFinished when the trainer cannot score."""
        asked = {
            name: self._course.scores(
                batch,
                f"trainer: {len(batch.sequences)} sequences with the weights {name}",
                self._store.checkpoint(name),
            )
            for name, batch in sorted(self._waiting.items())
        }
        for name, answer in asked.items():
            self._scores.setdefault(name, {}).update(answer().by_sequence())
        self._waiting = {}

    def locate_unexplained(self, record: EngineRecord, effective: Mapping[int, str]) -> Located | None:
        """The old parts of an engine whose cold tokens fit neither the new weights nor what was read back; None where
        they fit, or were sampled by more than one version."""
        honest = {case.name for case in record.start.cases if case.kind in HONEST}
        cold = [
            flight
            for flight in record.flights
            if flight.run == COLD_AFTER and flight.case in honest and set(flight.versions) == {1} and not flight.error
        ]
        # One case is enough: all of them load by the same path.
        cold = [flight for flight in cold if flight.case == cold[0].case]
        margin = fit_margin(record.flights, self.book, self._margin)
        if not cold or any(self._fits(cold, weights, margin) for weights in (effective.get(1, "1"), "0")):
            return None
        rollout_T = np.concatenate([np.asarray(flight.logprobs) for flight in cold])
        # A tied model has a head all the same; in a mixture it may differ from the embedding.
        names = dict.fromkeys([*tensor_names(self._store.checkpoint("1").path), HEAD])
        parts = parts_in_order(list(names))

        def score(old: Sequence[str]) -> Floats:
            name = self._store.write_mixture(1, old) if old else "1"
            self.ask(name, cold)
            self.score()
            return np.concatenate([self.book.logprobs(name, flight) for flight in cold])

        return locate_old(parts, rollout_T, score, margin)

    def _fits(self, flights: Sequence[Flight], checkpoint: str, margin: float) -> bool:
        book = self.book
        apart = [book.logprobs(checkpoint, flight) - np.asarray(flight.logprobs) for flight in flights]
        return float(np.mean(k3(np.concatenate(apart)))) < margin
