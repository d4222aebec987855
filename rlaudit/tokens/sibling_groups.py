"""Samples of one prompt, all of them, from a log of any size in fixed memory.

The samples of a group may lie anywhere in a log. Which groups are held is decided by the hash of their name alone:
while too much is held, every second hash is given up. So a held group has all its samples wherever they lie, and parts
of a log that are read apart hold the same groups. Of a sequence only the beginning is held: samples of one prompt soon
part.
"""

from hashlib import blake2b

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch, concatenate

# The trade: a thousand groups of 16 whose samples begin with 128 tokens; about 60 MB.
HELD_TOKENS = 2_000_000
BEGINNING = 128


class SiblingGroups:
    """The beginnings of whole groups. Groups are of one prompt and one step of training: the same weights drew them."""

    def __init__(self, tokens: int = HELD_TOKENS) -> None:
        self._tokens = tokens
        self._stride = 1
        self._held: list[tuple[Integers, TokenBatch]] = []

    def add(self, batch: TokenBatch) -> None:
        """Offer the sequences of a batch; those without token ids share no context that could be seen."""
        told = np.flatnonzero(np.minimum.reduceat(batch.token_id_T, batch.offsets[:-1]) != NO_TOKEN)
        if not told.size:
            return
        batch = batch if told.size == batch.sequences else batch.take(told)
        self._hold(_names(batch), batch, cut=True)
        while self.tokens > self._tokens and len(self._held):
            self._stride *= 2
            held, self._held = self._held, []
            for names_S, part in held:
                self._hold(names_S, part, cut=False)

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return sum(part.tokens for _, part in self._held)

    def groups(self) -> tuple[TokenBatch, Integers] | None:
        """What is held, and (S,) the number of each sequence's group; None where no group has two samples."""
        if not self._held:
            return None
        whole = concatenate(part for _, part in self._held)
        _, group_S, size_S = np.unique(
            np.concatenate([names_S for names_S, _ in self._held]), return_inverse=True, return_counts=True
        )
        several = np.flatnonzero(size_S[group_S] > 1)
        return (whole.take(several), group_S[several]) if several.size else None

    def _hold(self, names_S: Integers, batch: TokenBatch, cut: bool) -> None:
        mine = np.flatnonzero(names_S % self._stride == 0)
        if mine.size:
            part = batch if mine.size == batch.sequences else batch.take(mine)
            self._held.append((names_S[mine], part.beginning(BEGINNING) if cut else part))


def _names(batch: TokenBatch) -> Integers:
    """(S,) 63 bits that stand for prompt and step."""
    step_S = batch.sequence_columns.get("step", np.zeros(batch.sequences))
    names_S = batch.prompt_names_S if batch.group_names_S is None else batch.group_names_S
    return np.fromiter(
        (
            int.from_bytes(blake2b(f"{prompt}\0{step}".encode(), digest_size=8).digest()) >> 1
            for prompt, step in zip(names_S, step_S, strict=True)
        ),
        dtype=np.int64,
        count=batch.sequences,
    )
