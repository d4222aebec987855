"""Whole sequences of a token table: the unit in which logged rollouts are read, checked, measured and scored.

A file is a stream of batches, and no sequence is split between two of them. Prompts are numbered once for the whole
file, so that sums of batches add up by prompt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.recording.redaction import BEGINNING
from rlaudit.tokens.pairs import LogprobPairs

Column = NDArray[Any]
NO_TOKEN = -1
# Ids from here on are hashes of beginnings (rlaudit/recording/redaction.py).
FIRST_HASHED = BEGINNING
# What a table may hold besides the tokens and their logprobs. A value per sequence is repeated over its tokens.
TOKEN_COLUMNS = (
    "loss_mask",
    "rollout_version",
    "trainer_version",
    "old_logprob",
    "base_logprob",
    "advantage",
    "trainer_entropy",
    "cached_tokens",
    "stale_tokens",
    "batch_id",
)
# The line of a text file on which a sequence begins; for messages.
LINE = "line"
# Top lists, best first: the column of a table, and the field of a batch.
TOPS: Mapping[str, str] = {
    name: f"{name}_TK"
    for name in ("rollout_top_ids", "rollout_top_logprobs", "trainer_top_ids", "trainer_top_logprobs")
}
# What is tested on top lists lies in their first entries; a list may hold a whole vocabulary.
MOST_LISTED = 64
# What stands where a list has no entry.
MISSING_TOP: Mapping[str, float] = {name: NO_TOKEN if name.endswith("ids") else -np.inf for name in TOPS}
_TOPS = tuple(TOPS.values())
# Fields with an entry for each token, besides sequence_T, and for each sequence. Some may be None.
_BY_TOKEN = ("rollout_logprobs_T", "trainer_logprobs_T", "token_id_T", "position_T", *_TOPS)
_PROMPTS = ("prompt_token_ids_S", "prompt_texts_S")
_BY_SEQUENCE = ("prompt_S", "prompt_names_S", "sample_names_S", *_PROMPTS)
_PADDING: Mapping[str, float] = {TOPS[name]: missing for name, missing in MISSING_TOP.items()}


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """T sampled tokens in S sequences; logprobs in nats.

    *_top_ids_TK, *_top_logprobs_TK: best first, padded with -1 and -inf; None if the file has none.

    Raises ValueError, naming the field, when sizes do not fit.
    """

    # As the engine reported them.
    rollout_logprobs_T: Floats
    # NaN for a token that was not scored.
    trainer_logprobs_T: Floats
    # -1 if the export has none.
    token_id_T: Integers
    # 0 is the first completion token.
    position_T: Integers
    # 0..S-1, non-decreasing, every sequence has a token.
    sequence_T: Integers
    # Number of the prompt, or of its group if a file has more prompts than numbers; the same for the whole file.
    prompt_S: Integers
    # prompt_names_S, sample_names_S: as in the file, for messages.
    prompt_names_S: Column
    sample_names_S: Column
    # Those of TOKEN_COLUMNS that the file has, each (T,); loss_mask is 0 or 1.
    token_columns: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    # Reward, step, batch_id and cached_tokens, as far as it has them once per sequence, each (S,).
    sequence_columns: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    rollout_top_ids_TK: Column | None = None
    rollout_top_logprobs_TK: Column | None = None
    trainer_top_ids_TK: Column | None = None
    trainer_top_logprobs_TK: Column | None = None
    # The prompt's token ids, an array each; None if the file has none. Only scoring needs them.
    prompt_token_ids_S: Column | None = None
    # The prompt as a text, or as a list of chat messages, if the file has that.
    prompt_texts_S: Column | None = None

    def __post_init__(self) -> None:
        by_token = {name: getattr(self, name) for name in (*_BY_TOKEN, "sequence_T")}
        for name, values in {**by_token, **self.token_columns}.items():
            if values is not None and len(values) != self.tokens:
                raise ValueError(f"{name} has {len(values)} entries, rollout_logprobs_T has {self.tokens}")
        by_sequence = {name: getattr(self, name) for name in _BY_SEQUENCE}
        for name, values in {**by_sequence, **self.sequence_columns}.items():
            if values is not None and len(values) != self.sequences:
                raise ValueError(f"{name} has {len(values)} entries, prompt_S has {self.sequences}")

    @property
    def has_hashed_ids(self) -> bool:
        """Whether its ids are those of a redacted recording: hashes of all ids up to there, and no tokens."""
        return self.tokens > 0 and int(self.token_id_T.min()) >= FIRST_HASHED

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.rollout_logprobs_T)

    @property
    def sequences(self) -> int:
        """S."""
        return len(self.prompt_S)

    @cached_property
    def offsets(self) -> Integers:
        """(S + 1,) where each sequence begins, and T."""
        return np.searchsorted(self.sequence_T, np.arange(self.sequences + 1)).astype(np.int64)

    @cached_property
    def lengths_S(self) -> Integers:
        """Tokens per sequence."""
        return np.diff(self.offsets)

    @cached_property
    def counts_T(self) -> NDArray[np.bool_]:
        """Tokens that the loss counts: all, if there is no loss mask."""
        mask_T = self.token_columns.get("loss_mask")
        return np.ones(self.tokens, dtype=np.bool_) if mask_T is None else np.asarray(mask_T) != 0

    @cached_property
    def comparable_T(self) -> NDArray[np.bool_]:
        """Tokens that the loss counts and the trainer scored."""
        return self.counts_T & ~np.isnan(self.trainer_logprobs_T)

    def column(self, name: str, tokens_T: NDArray[np.bool_]) -> Floats | None:
        """Return one of `token_columns` for some of the tokens; None if it is not there."""
        column_T = self.token_columns.get(name)
        return None if column_T is None else np.asarray(column_T, dtype=np.float64)[tokens_T]

    def pairs(self, prompts: int | None = None) -> LogprobPairs:
        """Return the comparable tokens as logprob pairs; `prompts` is how many prompts the whole file numbers.

        Entropies are left out where one is missing: a mean over some tokens would pass for one over all.
        """
        entropy_T = self.token_columns.get("trainer_entropy")
        if entropy_T is not None and (np.isnan(entropy_T) & self.comparable_T).any():
            entropy_T = None
        whole = LogprobPairs(
            rollout_logprobs_T=self.rollout_logprobs_T,
            trainer_logprobs_T=self.trainer_logprobs_T,
            sequence_T=self.sequence_T,
            prompt_S=self.prompt_S,
            entropy_T=entropy_T,
            prompts=prompts,
            lagged=self._is_lagged(),
        )
        return whole if self.comparable_T.all() else whole.keep(self.comparable_T)

    def _is_lagged(self) -> bool:
        """Return whether a comparable token was sampled with other weights than it was scored with, if that is logged.

        A version that is not known is no lag.
        """
        sampled_T, scored_T = (self.column(name, self.comparable_T) for name in ("rollout_version", "trainer_version"))
        if sampled_T is None or scored_T is None:
            return False
        return bool((np.isfinite(sampled_T) & np.isfinite(scored_T) & (sampled_T != scored_T)).any())

    def name_of(self, sequence: int) -> str:
        """Return a sequence's name in messages."""
        return f"prompt {self.prompt_names_S[sequence]}, sample {self.sample_names_S[sequence]}"

    def line_of(self, sequence: int) -> int | None:
        """Return the line on which a sequence begins; None if its file has no lines."""
        line_S = self.sequence_columns.get(LINE)
        return None if line_S is None else int(line_S[sequence])

    def take(self, sequences: Sequence[int] | Integers) -> "TokenBatch":
        """Return only these sequences, in this order, numbered anew; prompts keep their numbers."""
        chosen = np.asarray(sequences, dtype=np.int64)
        lengths = self.lengths_S[chosen]
        ends = np.cumsum(lengths)
        rows_T = np.arange(ends[-1] if ends.size else 0) + np.repeat(self.offsets[chosen] - (ends - lengths), lengths)
        sequence_T = np.repeat(np.arange(len(chosen)), lengths)
        return self._of(rows_T, chosen, sequence_T)

    def beginning(self, tokens: int) -> "TokenBatch":
        """Return at most the first `tokens` tokens of every sequence."""
        kept_T = np.arange(self.tokens) - self.offsets[self.sequence_T] < tokens
        return self if kept_T.all() else self._of(kept_T, slice(None), self.sequence_T[kept_T])

    def _of(self, rows_T: NDArray[Any], chosen: Integers | slice, sequence_T: Integers) -> "TokenBatch":
        """Return these tokens of these sequences. sequence_T: of the tokens, as they are numbered then."""
        arrays: dict[str, Any] = {}
        for names, places in ((_BY_TOKEN, rows_T), (_BY_SEQUENCE, chosen)):
            columns = {name: getattr(self, name) for name in names}
            arrays |= {name: None if values is None else values[places] for name, values in columns.items()}
        return TokenBatch(
            **arrays,
            sequence_T=sequence_T,
            token_columns={name: values[rows_T] for name, values in self.token_columns.items()},
            sequence_columns={name: values[chosen] for name, values in self.sequence_columns.items()},
        )


def concatenate(batches: Iterable[TokenBatch]) -> TokenBatch:
    """Return one batch of all; only columns that every part has stay. Raises ValueError for none."""
    parts = list(batches)
    if not parts:
        raise ValueError("there is no batch to concatenate")
    firsts = np.cumsum([0, *(part.sequences for part in parts)])
    flat: dict[str, Any] = {}
    for name in (attribute.name for attribute in fields(TokenBatch)):
        values = [getattr(part, name) for part in parts]
        if name in _TOPS:
            flat[name] = _stacked(name, values)
        elif name in _PROMPTS:
            flat[name] = None if any(value is None for value in values) else np.concatenate(values)
        elif name in {"token_columns", "sequence_columns"}:
            shared = [column for column in values[0] if all(column in columns for columns in values)]
            flat[name] = {column: np.concatenate([columns[column] for columns in values]) for column in shared}
        elif name == "sequence_T":
            flat[name] = np.concatenate([part + first for part, first in zip(values, firsts[:-1], strict=True)])
        else:
            flat[name] = np.concatenate(values)
    return TokenBatch(**flat)


def _stacked(name: str, values: Sequence[Column | None]) -> Column | None:
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return None
    width = max(value.shape[1] for value in present)
    padded = [np.pad(value, ((0, 0), (0, width - value.shape[1])), constant_values=_PADDING[name]) for value in present]
    return np.concatenate(padded)


def objects(values: Sequence[Any]) -> Column:
    """Return values of any kind, lists too, as an array of them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
