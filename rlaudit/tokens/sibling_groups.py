"""Samples of one prompt, all of them, from a log of any size in fixed memory.

The samples of a group may lie anywhere in a log. Which groups are held is decided by the hash of their name alone:
while too much is held, every second hash is given up. So a held group has all its samples wherever they lie, and parts
of a log that are read apart hold the same groups. Of a sequence only the beginning is held: samples of one prompt soon
part.
"""

from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.token_batch import NO_TOKEN, TOPS, TokenBatch, concatenate

# The trade: a thousand groups of 16 whose samples begin with 128 tokens; about 60 MB.
HELD_TOKENS = 2_000_000
BEGINNING = 128
OF_TOKENS = ("loss_mask", "rollout_version")
OF_SEQUENCES = ("step", "reward")


class SiblingGroups:
    """The beginnings of whole groups. Groups are of one prompt and one step of training: the same weights drew them.

    stride: groups are held whose hash it divides. held: the hashes of sequences' groups, and the sequences. tokens: of
    all held.
    """

    def __init__(self, tokens: int = HELD_TOKENS, stride: int = 1) -> None:
        self._tokens = tokens
        self.stride = stride
        self.held: list[tuple[Integers, TokenBatch]] = []
        self.tokens = 0

    def add(self, batch: TokenBatch) -> None:
        """Offer the sequences of a batch. Those without token ids have no visible context."""
        with_ids = np.flatnonzero(np.minimum.reduceat(batch.token_id_T, batch.offsets[:-1]) != NO_TOKEN)
        if not with_ids.size:
            return
        batch = batch if with_ids.size == batch.sequences else batch.take(with_ids)
        self._hold(_names(batch), batch, cut=True)
        self._thin()

    def merge(self, other: "SiblingGroups", number_of: Integers | None = None) -> None:
        """Hold what a part of the same log held. The order of the parts does not decide which groups are held.

        number_of: our number of each number that the part gave a prompt; None if both are the same.
        """
        if other.stride > self.stride:
            self.stride = other.stride
            self._hold_again()
        for names_S, batch in other.held:
            renumbered = batch if number_of is None else replace(batch, prompt_S=number_of[batch.prompt_S])
            self._hold(names_S, renumbered, cut=False)
        self._thin()

    def _thin(self) -> None:
        while self.tokens > self._tokens and len(self.held):
            self.stride *= 2
            self._hold_again()

    def _hold_again(self) -> None:
        held, self.held, self.tokens = self.held, [], 0
        for names_S, part in held:
            self._hold(names_S, part, cut=False)

    def groups(self) -> tuple[TokenBatch, Integers] | None:
        """Return what is held, and (S,) the number of each sequence's group; None if no group has two samples."""
        if not self.held:
            return None
        whole = concatenate(part for _, part in self.held)
        _, group_S, size_S = np.unique(
            np.concatenate([names_S for names_S, _ in self.held]), return_inverse=True, return_counts=True
        )
        several = np.flatnonzero(size_S[group_S] > 1)
        return (whole.take(several), group_S[several]) if several.size else None

    def _hold(self, names_S: Integers, batch: TokenBatch, cut: bool) -> None:
        chosen = np.flatnonzero(names_S % self.stride == 0)
        if chosen.size:
            lean = _lean(batch) if cut else batch
            part = lean if chosen.size == batch.sequences else lean.take(chosen)
            part = part.beginning(BEGINNING) if cut else part
            self.held.append((names_S[chosen], part))
            self.tokens += part.tokens


def _lean(batch: TokenBatch) -> TokenBatch:
    """Return only what samples of one prompt are tested by (`meaning/siblings.py`, `meaning/broken_groups.py`)."""
    no_lists: dict[str, Any] = dict.fromkeys(TOPS.values())
    return replace(
        batch,
        token_columns={name: values for name, values in batch.token_columns.items() if name in OF_TOKENS},
        sequence_columns={name: values for name, values in batch.sequence_columns.items() if name in OF_SEQUENCES},
        prompt_token_ids_S=None,
        prompt_texts_S=None,
        **no_lists,
    )


def _names(batch: TokenBatch) -> Integers:
    """Return (S,) 63 bits that stand for prompt and step."""
    step_S = batch.sequence_columns.get("step", np.zeros(batch.sequences))
    name_of = lru_cache(typed=True)(_name)
    named = map(name_of, batch.prompt_names_S.tolist(), step_S.tolist())
    return np.fromiter(named, dtype=np.int64, count=batch.sequences)


def _name(prompt: Any, step: float) -> int:
    return int.from_bytes(blake2b(f"{prompt}\0{step}".encode(), digest_size=8).digest()) >> 1
