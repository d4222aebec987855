"""Everything that is known of the tokens of one comparison, in flat arrays: what signatures of causes are tested on.

The log ratio is taken after the meaning of the reported logprobs was found: a temperature that one side forgot would
otherwise be explained by everything that correlates with entropy. If the meaning could not be found (no scores, no
top-k logprobs of the trainer), the log ratio is the logged one, and `meaning` is None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.meaning import Meaning
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.statistics.measurement.excess import ExcessModel
from rlaudit.statistics.measurement.head_rounding import HeadRounding, head_rounding
from rlaudit.statistics.resample import clusters_of
from rlaudit.tokens.alignment import AlignmentReport
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# The trade: every covariate of a cause is a column of so many tokens, fitted again and again; shares of k2 have errors
# of prompts by then, not of tokens.
MOST_TOKENS = 200_000
Statistic = TypeVar("Statistic")


@dataclass(frozen=True, eq=False)
class TokenEvidence:
    """T tokens in S sequences of P clusters (prompts, or sequences if prompts are too few to resample)."""

    # Trainer - rollout in nats, the trainer taken under the meaning that the rollout reports; finite.
    log_ratio_T: Floats
    rollout_logprobs_T: Floats
    trainer_logprobs_T: Floats
    token_id_T: Integers
    position_T: Integers
    # sequence_T, cluster_S: as in LogprobPairs.
    sequence_T: Integers
    cluster_S: Integers
    # Covariates, each (T,), by the names of the token table; and version_lag, batch_size, seen_before,
    # absolute_position and base_logprob, if known.
    columns: Mapping[str, NDArray[Any]]
    # Top logprobs of each side, (T, K), by their names in TokenBatch.
    tops: Mapping[str, NDArray[Any]]
    sampling: Semantics = RAW
    trainer: Semantics = RAW
    # Known only if the trainer scored the tokens under other meanings.
    meaning: Meaning | None = None
    alignment: AlignmentReport | None = None
    # What is said of tokens with a number in place of a logprob, which are left out.
    placed: tuple[str, ...] = ()
    # What is said of a loss mask that counts tokens that were not sampled.
    mask_off: tuple[str, ...] = ()
    # The share of draws that are an end of sequence and not logged.
    ends_missing: float = 0.0
    # Of a comparison in which nothing is wrong, nats^2; None if none was measured.
    floor_k2: float | None = None
    excess: ExcessModel | None = field(default=None, repr=False)

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.log_ratio_T)

    @property
    def clusters(self) -> int:
        """P."""
        return int(self.cluster_S.max(initial=-1)) + 1

    @cached_property
    def cluster_T(self) -> Integers:
        """The cluster of each token."""
        return self.cluster_S[self.sequence_T]

    @cached_property
    def room_T(self) -> Floats:
        """1 - p of the token, the larger of both sides: noise on the logits moves a logprob in proportion to it."""
        smaller_T = np.minimum(self.rollout_logprobs_T, self.rollout_logprobs_T + self.log_ratio_T)
        room_T: Floats = -np.expm1(np.minimum(smaller_T, 0.0))
        return room_T

    @cached_property
    def k2(self) -> float:
        """Half the mean squared log ratio, nats^2."""
        return 0.5 * float(np.mean(np.square(self.log_ratio_T))) if self.tokens else 0.0

    @cached_property
    def head_rounding(self) -> HeadRounding:
        """The lattices of both sides' top logprobs; temperatures as the semantic layer found them."""
        return head_rounding(
            self.tops.get("rollout_top_logprobs"),
            self.tops.get("trainer_top_logprobs"),
            (self.meaning.theta_report if self.meaning else self.sampling).temperature,
            self.trainer.temperature,
        )

    def missing(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of these columns are missing."""
        present = {*self.columns, *self.tops}
        if np.any(self.token_id_T != NO_TOKEN):
            present.add("token_id")
        if self.meaning is not None:
            present.add("trainer_scores")
        return tuple(name for name in needs if name not in present)

    def with_excess(self, excess: ExcessModel) -> "TokenEvidence":
        """Return the same tokens with the model of their excess mismatch."""
        return replace(self, excess=excess)


def once(statistic: Callable[[TokenEvidence], Statistic]) -> Callable[[TokenEvidence], Statistic]:
    """Return a statistic that several causes need, computed once for each evidence."""
    statistics: WeakKeyDictionary[TokenEvidence, Statistic] = WeakKeyDictionary()

    @wraps(statistic)
    def remembered(evidence: TokenEvidence) -> Statistic:
        if evidence not in statistics:
            statistics[evidence] = statistic(evidence)
        return statistics[evidence]

    return remembered


def token_evidence(
    batch: TokenBatch,
    *,
    sampling: Semantics = RAW,
    trainer: Semantics = RAW,
    scored: ScoredTokens | None = None,
    meaning: Meaning | None = None,
    alignment: AlignmentReport | None = None,
    floor_k2: float | None = None,
    most_tokens: int = MOST_TOKENS,
    placed: tuple[str, ...] = (),
    mask_off: tuple[str, ...] = (),
    ends_missing: float = 0.0,
) -> TokenEvidence:
    """Gather the evidence of a batch.

    scored: the scores of the batch's comparable tokens, in its order; with them the log ratio is taken under `meaning`.
    Whole sequences are left out evenly if there are more than `most_tokens` tokens.
    Raises ValueError if `scored` does not fit the batch.
    """
    explained_T = _explained(batch, scored, None if meaning is None else meaning.theta_report, trainer)
    usable_T = batch.comparable_T & np.isfinite(explained_T) & np.isfinite(batch.rollout_logprobs_T)
    if batch.tokens > most_tokens:
        stride = -(-batch.tokens // most_tokens)
        usable_T = usable_T & (batch.sequence_T % stride == 0)
    kept_S, sequence_T = np.unique(batch.sequence_T[usable_T], return_inverse=True)
    columns = {name: values[usable_T] for name, values in _columns(batch).items()}
    tops = {
        name: values[usable_T]
        for name in ("rollout_top_ids", "rollout_top_logprobs", "trainer_top_ids", "trainer_top_logprobs")
        if (values := getattr(batch, f"{name}_TK")) is not None
    }
    rollout_T = batch.rollout_logprobs_T[usable_T]
    return TokenEvidence(
        log_ratio_T=explained_T[usable_T] - rollout_T,
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=batch.trainer_logprobs_T[usable_T],
        token_id_T=_token_ids(batch)[usable_T],
        position_T=batch.position_T[usable_T],
        sequence_T=sequence_T.astype(np.int64),
        cluster_S=clusters_of(batch.prompt_S[kept_S]),
        columns=columns,
        tops=tops,
        sampling=sampling,
        trainer=trainer,
        meaning=meaning,
        alignment=alignment,
        placed=placed,
        mask_off=mask_off,
        ends_missing=ends_missing,
        floor_k2=floor_k2,
    )


def _explained(
    batch: TokenBatch, scored: ScoredTokens | None, reported: Semantics | None, trainer: Semantics
) -> Floats:
    """Return the trainer's logprobs under the rollout's reported meaning; the logged ones if that is the trainer's."""
    if scored is None or reported is None or not reported.differences(trainer, tolerance=0.0):
        return batch.trainer_logprobs_T
    comparable = int(batch.comparable_T.sum())
    if scored.tokens not in {comparable, batch.tokens}:
        raise ValueError(f"{scored.tokens} tokens are scored, the batch has {comparable} comparable ones")
    under_T = scored.logprobs_under(reported)
    if under_T is None:
        return batch.trainer_logprobs_T
    if scored.tokens == batch.tokens:
        return under_T
    explained_T: Floats = np.full(batch.tokens, np.nan)
    explained_T[batch.comparable_T] = under_T
    return explained_T


def _columns(batch: TokenBatch) -> dict[str, NDArray[Any]]:
    repeated = {name: values[batch.sequence_T] for name, values in batch.sequence_columns.items()}
    columns = {**repeated, **batch.token_columns}
    if "rollout_version" in columns and "trainer_version" in columns:
        columns["version_lag"] = np.asarray(columns["trainer_version"], dtype=np.float64) - columns["rollout_version"]
    if "batch_id" in columns:
        _, number_T = np.unique(columns["batch_id"], return_inverse=True)
        sequences = np.unique(np.stack([number_T, batch.sequence_T]), axis=1)
        columns["batch_id"] = number_T
        columns["batch_size"] = np.bincount(sequences[0])[number_T]
    if "prompt_tokens" not in columns and batch.prompt_token_ids_S is not None:
        columns["prompt_tokens"] = np.array([len(ids) for ids in batch.prompt_token_ids_S])[batch.sequence_T]
    if "prompt_tokens" in columns:
        columns["absolute_position"] = columns["prompt_tokens"] + batch.position_T
    if "seen_before" not in columns and np.any(_token_ids(batch) != NO_TOKEN):
        columns["seen_before"] = _seen_before(batch)
    return columns


def _token_ids(batch: TokenBatch) -> Integers:
    """Return the token ids; NO_TOKEN for those of a redacted recording, which are hashes."""
    return np.full(batch.tokens, NO_TOKEN) if batch.has_hashed_ids else batch.token_id_T


def _seen_before(batch: TokenBatch) -> NDArray[np.bool_]:
    """Return whether the sequence sampled the token already; whether the prompt holds it is not known."""
    ids, id_T = np.unique(batch.token_id_T, return_inverse=True)
    _, first_T = np.unique(batch.sequence_T * len(ids) + id_T, return_index=True)
    seen_T = np.ones(batch.tokens, dtype=np.bool_)
    seen_T[first_T] = False
    return seen_T
