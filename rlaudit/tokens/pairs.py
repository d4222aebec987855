"""Logprobs of the same sampled tokens, as the rollout engine reported them and as the trainer sees them.

Everything is flat over tokens (`_T`), with the sequence of each token and the prompt of each sequence
beside it, because completions are ragged and prompts are the units that are independent of each other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlaudit.arrays import Floats, Integers

Scalar = TypeVar("Scalar", bound=np.generic)

# exp() of a log ratio beyond this is taken as exp of this, so that its square still fits into a float64.
# Measurements say how many were. A ratio of e^300 is a broken logprob, not a quantity.
LOG_RATIO_CAP = 300.0


def importance_ratio(log_ratio: Floats) -> Floats:
    """Return exp(log_ratio), of at most LOG_RATIO_CAP so that nothing overflows."""
    return np.exp(np.minimum(log_ratio, LOG_RATIO_CAP))


def importance_ratio_minus_one(log_ratio: Floats) -> Floats:
    """Return exp(log_ratio) - 1 without the cancellation of writing it so."""
    return np.expm1(np.minimum(log_ratio, LOG_RATIO_CAP))


@dataclass(frozen=True, eq=False)
class LogprobPairs:
    """Rollout and trainer logprobs (nats) of T sampled tokens in S sequences of P prompts.

    Raises ValueError that names the field if shapes or indices do not fit. `integrity.py` judges values.
    """

    # rollout_logprobs_T, trainer_logprobs_T: (T,) what each side says of the sampled token.
    rollout_logprobs_T: Floats
    trainer_logprobs_T: Floats
    # (T,) sequence of each token, 0..S-1, non-decreasing.
    sequence_T: Integers
    # (S,) prompt of each sequence, 0..P-1. Two arms that share prompts number them alike.
    prompt_S: Integers
    # (T,) entropy of the trainer's distribution, if the trainer recorded it.
    entropy_T: Floats | None = None
    # P, if prompts without a sequence must keep their number (chunks of one file, paired arms).
    prompts: int | None = None
    # Whether some token is known to be sampled with other weights than the trainer's.
    lagged: bool = False

    def __post_init__(self) -> None:
        for name in ("rollout_logprobs_T", "trainer_logprobs_T", "entropy_T"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, _flat(name, values, np.float64))
        for name in ("sequence_T", "prompt_S"):
            object.__setattr__(self, name, _indices(name, getattr(self, name)))
        for name in ("trainer_logprobs_T", "sequence_T", "entropy_T"):
            values = getattr(self, name)
            if values is not None and values.size != self.tokens:
                raise ValueError(f"{name} has {values.size} entries, rollout_logprobs_T has {self.tokens}")
        if self.tokens and int(self.sequence_T.max()) >= self.sequences:
            raise ValueError(
                f"sequence_T names sequence {self.sequence_T.max()}, prompt_S has {self.sequences} entries"
            )
        if np.any(np.diff(self.sequence_T) < 0):
            raise ValueError("sequence_T must be non-decreasing: sort the tokens by sequence first")
        highest = int(self.prompt_S.max(initial=-1))
        if self.prompts is None:
            object.__setattr__(self, "prompts", highest + 1)
        elif self.prompts <= highest:
            raise ValueError(f"prompts is {self.prompts}, prompt_S names prompt {highest}")

    @property
    def tokens(self) -> int:
        """T."""
        return int(self.rollout_logprobs_T.size)

    @property
    def sequences(self) -> int:
        """S, sequences without a token included."""
        return int(self.prompt_S.size)

    @property
    def prompt_count(self) -> int:
        """P, prompts without a sequence included."""
        return self.prompts or 0

    @cached_property
    def log_ratio_T(self) -> Floats:
        """log of the importance ratio per token: trainer - rollout, in nats."""
        return self.trainer_logprobs_T - self.rollout_logprobs_T

    @cached_property
    def abs_log_ratio_T(self) -> Floats:
        """|log ratio| per token, in nats."""
        return np.abs(self.log_ratio_T)

    @cached_property
    def ratio_minus_one_T(self) -> Floats:
        """Importance ratio - 1 per token, of a log ratio of at most LOG_RATIO_CAP."""
        return importance_ratio_minus_one(self.log_ratio_T)

    @cached_property
    def prompt_T(self) -> Integers:
        """The prompt of each token."""
        return np.repeat(self.prompt_S, self.sequence_lengths_S)

    @cached_property
    def _runs(self) -> tuple[Integers, Integers]:
        """Where each sequence that has tokens begins, and which sequence it is."""
        if not self.tokens:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        starts = np.concatenate([[0], np.flatnonzero(self.sequence_T[1:] != self.sequence_T[:-1]) + 1])
        return starts, self.sequence_T[starts]

    @cached_property
    def sequence_lengths_S(self) -> Integers:
        """Tokens per sequence."""
        starts, sequences = self._runs
        lengths_S = np.zeros(self.sequences, dtype=np.int64)
        lengths_S[sequences] = np.diff(starts, append=self.tokens)
        return lengths_S

    @cached_property
    def sequence_log_ratio_S(self) -> Floats:
        """Sum of the log ratios of a sequence: the log of its product weight."""
        return self.sum_by_sequence(self.log_ratio_T)

    @cached_property
    def tokens_P(self) -> Integers:
        """Tokens per prompt."""
        return self.sum_by_prompt(self.sequence_lengths_S.astype(np.float64)).astype(np.int64)

    @cached_property
    def sequences_P(self) -> Integers:
        """Sequences per prompt."""
        return np.bincount(self.prompt_S, minlength=self.prompt_count).astype(np.int64)

    def sum_by_sequence(self, values_T: "Floats | NDArray[np.bool_]") -> Floats:
        """Return (S,) sums over each sequence; events (bool) are counted."""
        starts, sequences = self._runs
        sums_S = np.zeros(self.sequences)
        if starts.size:
            # Counted as bytes into 32 bits, which is several times as fast as summing booleans.
            sums_S[sequences] = (
                np.add.reduceat(values_T.view(np.int8), starts, dtype=np.int32)
                if values_T.dtype == np.bool_
                else np.add.reduceat(values_T, starts)
            )
        return sums_S

    def sum_by_prompt(self, values_S: "Floats | NDArray[np.bool_]") -> Floats:
        """Return (P,) sums of a value per sequence over each prompt."""
        return np.bincount(self.prompt_S, values_S, minlength=self.prompt_count).astype(np.float64)

    def keep(self, keep_T: ArrayLike) -> "LogprobPairs":
        """Return only the tokens where `keep_T` (T,) is true. Empty sequences go; prompts keep their numbers."""
        mask_T = _flat("keep_T", keep_T, np.bool_)
        if mask_T.size != self.tokens:
            raise ValueError(f"keep_T has {mask_T.size} entries, rollout_logprobs_T has {self.tokens}")
        kept_S, sequence_T = np.unique(self.sequence_T[mask_T], return_inverse=True)
        return LogprobPairs(
            rollout_logprobs_T=self.rollout_logprobs_T[mask_T],
            trainer_logprobs_T=self.trainer_logprobs_T[mask_T],
            sequence_T=sequence_T,
            prompt_S=self.prompt_S[kept_S],
            entropy_T=None if self.entropy_T is None else self.entropy_T[mask_T],
            prompts=self.prompts,
            lagged=self.lagged,
        )


def _flat(name: str, values: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    array = np.asarray(values, dtype=dtype)
    if array.ndim != 1:
        raise ValueError(f"{name} must be flat, found shape {array.shape}")
    return array


def _indices(name: str, values: ArrayLike) -> Integers:
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold integers, found {array.dtype}")
    flat = _flat(name, array, np.int64)
    if flat.size and int(flat.min()) < 0:
        raise ValueError(f"{name} must not be negative, found {flat.min()}")
    return flat
