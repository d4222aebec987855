"""What is known of the same sampled tokens after the trainer scored them: the input of the semantic layer.

Engine noise carries some tokens across the edge of a filter that the trainer replays. Two engines whose logits differ
by rounding cut the same nucleus at slightly different places. A few sampled tokens then lie outside the trainer's
support, as much of the trainer's mass lies outside the engine's, and neither means that another filter was used. The
share grows with the noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics
from rlaudit.statistics.resample import clusters_of

_PER_TOKEN = ("trainer_logprobs_T", "entropy_T", "rank_T", "mass_above_T", "max_probability_T", "sequence_T")
_TABLES = ("candidate_logprobs_TC", "nucleus_mass_TG", "top_k_mass_TG", "min_p_mass_TG")
_FLAT = ("trainer_logprobs", "entropy", "mass_above", "max_probability")
LEAST_EDGE_SHARE = 0.005
# Per nat of mean |d|: 0.05 to 0.25 where top-k, top-p or min-p cut the tail of a simulated model, 0.6 where top_k=5
# cuts its bulk (tests/meaning/simulated_tokens.py).
SHARE_PER_NAT = 0.6
MOST_TOKENS = 0.5
EDGE_CAP_NATS = 1.0


@dataclass(frozen=True, eq=False)
class ScoredTokens:
    """T tokens in S sequences of P prompts, with C candidate meanings and G points of a grid; logprobs in nats.

    Raises ValueError, naming the field, if sizes do not fit.
    """

    # As reported.
    rollout_logprobs_T: Floats
    # Of the trainer's own distribution, up to max_probability_T; rank 1 is the most probable.
    trainer_logprobs_T: Floats
    entropy_T: Floats
    rank_T: Integers
    mass_above_T: Floats
    max_probability_T: Floats
    # Under `candidates`, -inf outside a candidate's support.
    candidate_logprobs_TC: NDArray[Any]
    # Three filters: the mass that each would keep at each point of its grid (`candidates.py`).
    nucleus_mass_TG: NDArray[Any]
    top_k_mass_TG: NDArray[Any]
    min_p_mass_TG: NDArray[Any]
    sequence_T: Integers
    prompt_S: Integers
    candidates: tuple[Semantics, ...]
    # Whether the engine lists a token without any probability, as it does what a filter took away.
    report_is_cut: bool = False

    def __post_init__(self) -> None:
        for name in (*_PER_TOKEN, *_TABLES):
            rows = len(getattr(self, name))
            if rows != self.tokens:
                raise ValueError(f"{name} has {rows} rows, rollout_logprobs_T has {self.tokens}")
        widths = (len(self.candidates), len(NUCLEUS), len(TOP_K), len(MIN_P))
        for name, width in zip(_TABLES, widths, strict=True):
            columns = getattr(self, name).shape[1]
            if columns != width:
                raise ValueError(f"{name} has {columns} columns, expected {width}")
        if self.tokens and int(self.sequence_T.max()) >= len(self.prompt_S):
            raise ValueError(f"sequence_T names sequence {self.sequence_T.max()}, prompt_S has {len(self.prompt_S)}")

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, NDArray[Any]],
        rows_T: Integers,
        lengths_S: Sequence[int] | Integers,
        rollout_logprobs: Sequence[float] | Floats,
        prompt_S: Sequence[int] | Integers,
        candidates: Sequence[Semantics],
        report_is_cut: bool = False,
    ) -> "ScoredTokens":
        """Make it from the rows of scores.npz that belong to the tokens of `rollout_logprobs`, in that order."""
        flat = {f"{name}_T": np.asarray(scores[name][rows_T], dtype=np.float64) for name in _FLAT}
        return cls(
            rollout_logprobs_T=np.asarray(rollout_logprobs, dtype=np.float64),
            rank_T=np.asarray(scores["rank"][rows_T], dtype=np.int64),
            candidate_logprobs_TC=scores["candidate_logprobs"][rows_T],
            nucleus_mass_TG=scores["nucleus_mass"][rows_T],
            top_k_mass_TG=scores["top_k_mass"][rows_T],
            min_p_mass_TG=scores["min_p_mass"][rows_T],
            sequence_T=np.repeat(np.arange(len(lengths_S)), lengths_S),
            prompt_S=np.asarray(prompt_S, dtype=np.int64),
            candidates=tuple(candidates),
            report_is_cut=report_is_cut,
            **flat,
        )

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.rollout_logprobs_T)

    @property
    def sequences(self) -> int:
        """S."""
        return len(self.prompt_S)

    @cached_property
    def _cluster_S(self) -> Integers:
        """Prompts, numbered without gaps; sequences if prompts are too few to resample."""
        return clusters_of(self.prompt_S)

    @cached_property
    def cluster_T(self) -> Integers:
        """The cluster of each token, 0..clusters-1."""
        return self._cluster_S[self.sequence_T]

    @cached_property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self._cluster_S.max(initial=-1)) + 1

    @cached_property
    def log_ratio_T(self) -> Floats:
        """trainer - rollout, nats."""
        return self.trainer_logprobs_T - self.rollout_logprobs_T

    def per_cluster(self, values_T: Floats) -> Floats:
        """Return (P,) sums of a per-token quantity."""
        return np.bincount(self.cluster_T, values_T, minlength=self.clusters).astype(np.float64)

    @cached_property
    def lengths_P(self) -> Floats:
        """(P,) tokens of each cluster."""
        return self.per_cluster(np.ones(self.tokens))

    def logprobs_under(self, semantics: Semantics) -> Floats | None:
        """Return (T,) logprobs under a candidate, a plain temperature that the grid brackets, or a filter of a grid.

        None under others. A temperature between grid points is interpolated by the cubic through the four nearest in
        1/T. A filter is one of the trainer's own distribution.
        """
        if semantics in self.candidates:
            column: Floats = self.candidate_logprobs_TC[:, self.candidates.index(semantics)].astype(np.float64)
            return column
        if semantics.filtered:
            return self._filtered(semantics)
        if not semantics.plain:
            return None
        inverse = 1.0 / semantics.temperature
        plain = [(place, meaning) for place, meaning in enumerate(self.candidates) if meaning.plain]
        nodes = sorted((1.0 / meaning.temperature, place) for place, meaning in plain)
        if len(nodes) < 4 or not nodes[0][0] <= inverse <= nodes[-1][0]:
            return None
        first = min(max(sum(node < inverse for node, _ in nodes) - 2, 0), len(nodes) - 4)
        near = nodes[first : first + 4]
        interpolated = np.zeros(self.tokens)
        for node, place in near:
            weight = np.prod([(inverse - other) / (node - other) for other, _ in near if other != node])
            interpolated += weight * self.candidate_logprobs_TC[:, place]
        return interpolated

    @cached_property
    def filters(self) -> tuple[Semantics, ...]:
        """What one filter more makes of the trainer's own distribution, at each point of its grid."""
        trainer = self._plain_trainer
        grids: dict[str, tuple[Any, ...]] = {"top_p": NUCLEUS, "top_k": TOP_K, "min_p": MIN_P}
        every = () if trainer is None else [replace(trainer, **{name: at}) for name in grids for at in grids[name]]
        return tuple(filtered for filtered in every if filtered not in self.candidates)

    @cached_property
    def _plain_trainer(self) -> Semantics | None:
        """The plain candidate that is the trainer's; None if it filters."""
        columns = zip(self.candidates, self.candidate_logprobs_TC.T, strict=True)
        trainer_T = self.trainer_logprobs_T
        return next(
            (meaning for meaning, under_T in columns if meaning.plain and np.allclose(under_T, trainer_T)), None
        )

    def _filtered(self, semantics: Semantics) -> Floats | None:
        if semantics not in self.filters:
            return None
        most_T = np.exp(self.trainer_logprobs_T) / np.maximum(self.max_probability_T, 1e-300)
        name, table_TG, grid, kept_T = {
            semantics.top_p < 1: ("top_p", self.nucleus_mass_TG, NUCLEUS, self.mass_above_T < semantics.top_p),
            semantics.top_k > 0: ("top_k", self.top_k_mass_TG, TOP_K, self.rank_T <= semantics.top_k),
            semantics.min_p > 0: ("min_p", self.min_p_mass_TG, MIN_P, most_T >= semantics.min_p),
        }[True]
        mass_T = table_TG[:, grid.index(getattr(semantics, name))].astype(np.float64)
        return np.where(kept_T, self.trainer_logprobs_T - np.log(np.maximum(mass_T, 1e-300)), -np.inf)


def engine_noise(scored: ScoredTokens) -> float:
    """Return the mean |d| that the best meaning leaves on the tokens it calls possible, nats."""
    noises = []
    for explained_T in (scored.trainer_logprobs_T, *scored.candidate_logprobs_TC.T):
        possible_T = np.isfinite(explained_T) & np.isfinite(scored.rollout_logprobs_T)
        if possible_T.size and possible_T.mean() > MOST_TOKENS:
            apart_T = np.abs(scored.rollout_logprobs_T[possible_T] - explained_T[possible_T])
            noises.append(float(np.minimum(apart_T, EDGE_CAP_NATS).mean()))
    return min(noises, default=0.0)


def edge_share(scored: ScoredTokens) -> float:
    """Return the largest share of impossible tokens that engine noise explains."""
    return LEAST_EDGE_SHARE + SHARE_PER_NAT * engine_noise(scored)
