"""Asks the trainer for scores, a job per checkpoint, and keeps what it said.

Where no read back explains why an engine's tokens do not fit the new weights, it goes on asking with mixtures until the
old parts are found (locate.py).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.errors import NotFinished
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.studies.arms.rollout import RolloutContext
from rlaudit.laboratory.studies.updates.checkpoint_store import CheckpointStore
from rlaudit.laboratory.studies.updates.checkpoints import tensor_names
from rlaudit.laboratory.studies.updates.engine_floor import fit_margin
from rlaudit.laboratory.studies.updates.locate import Located, locate_old, parts_in_order
from rlaudit.laboratory.studies.updates.matrix import COLD_AFTER
from rlaudit.laboratory.studies.updates.parts import HEAD
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook, Sequence_, Wanted, read_scores, score_cell
from rlaudit.laboratory.studies.updates.settings import UpdateRecipe
from rlaudit.metrics.k3 import k3

HONEST = ("matrix", "in a row", "path")


class ScoreKeeper:
    """Scores by checkpoint, growing as they are asked for."""

    def __init__(
        self,
        recipe: UpdateRecipe,
        context: RolloutContext,
        trainer: Environment,
        runner: Runner,
        store: CheckpointStore,
    ) -> None:
        self._recipe, self._context, self._trainer, self._runner = recipe, context, trainer, runner
        self._store = store
        self._scores: dict[str, dict[Sequence_, Floats]] = {}
        self._waiting: dict[str, Wanted] = {}

    @property
    def book(self) -> Scorebook:
        """Everything scored so far."""
        return Scorebook(self._scores)

    def ask(self, checkpoint: str, flights: Sequence[Flight]) -> None:
        """Ask for scores of these requests; those that are there are not asked for again."""
        book = self.book
        for flight in flights:
            if not book.has(checkpoint, flight):
                self._waiting.setdefault(checkpoint, Wanted()).add(flight)

    def score(self) -> None:
        """Run a job for every checkpoint that was asked for. Raises NotFinished when the trainer cannot score."""
        for name, batch in sorted(self._waiting.items()):
            if batch.sequences:
                self._scores.setdefault(name, {}).update(self._scored(name, batch))
        self._waiting = {}

    def _scored(self, name: str, batch: Wanted) -> dict[Sequence_, Floats]:
        path, identity = self._store.path(name), self._store.identity(name)
        cell = score_cell(self._context, self._recipe, path, identity, batch, self._trainer)
        outcome = self._runner.outcome(cell, f"trainer: {len(batch.sequences)} sequences with the weights {name}")
        if outcome.status != "ok":
            why = outcome.failure.message if outcome.failure else "no reason given"
            raise NotFinished(
                f"the trainer could not score with {path}: {why}", f"its log: {self._runner.directory(cell)}/log.txt"
            )
        return read_scores(self._runner.directory(cell), batch)

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
        margin = fit_margin(record.flights, self.book, self._recipe.equivalence_margin)
        if not cold or any(self._fits(cold, weights, margin) for weights in (effective.get(1, "1"), "0")):
            return None
        rollout_T = np.concatenate([np.asarray(flight.logprobs) for flight in cold])
        # A tied model has a head all the same; in a mixture it may differ from the embedding.
        names = dict.fromkeys([*tensor_names(self._store.path("1")), HEAD])
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
