"""Which recorded sequence a row of token ids begins with, among any number of sequences.

A trainer pads its rows, so where a completion ends is not known. Every beginning of a row has a hash, made from the
one before by one addition, and a completion is met if the hash of all its tokens is among them: hundreds of rows of
thousands of tokens are looked up in one step. With hashes of 64 bits a million sequences and a thousand million
beginnings meet by chance in one of twenty thousand recordings.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Integers

Hashes = NDArray[np.uint64]


def hashes_of_beginnings(ids_RT: Integers) -> Hashes:
    """Return (R, T): for each row the hashes of its first 1, 2, ..., T ids."""
    places_T = np.arange(ids_RT.shape[-1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed_RT = _mixed(ids_RT.astype(np.int64).view(np.uint64)) * (
            _mixed(places_T ^ np.uint64(0x5EED)) | np.uint64(1)
        )
        return np.cumsum(mixed_RT, axis=-1, dtype=np.uint64)


def hash_of(ids_T: Integers) -> int:
    """Return the hash of all ids."""
    return int(hashes_of_beginnings(ids_T[None, :])[0, -1])


def _mixed(values: Hashes) -> Hashes:
    """Return values whose bits all depend on all bits: splitmix64 (Steele, Lea and Flood, 2014)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class Beginnings:
    """Sequences by the hash of all their tokens and their length."""

    def __init__(self) -> None:
        self.by_hash: dict[tuple[int, int], list[int]] = {}
        self._hashes: Hashes | None = None
        self._lengths: Integers | None = None

    def add(self, number: int, ids_T: Integers) -> None:
        """Add a sequence."""
        self.by_hash.setdefault((hash_of(ids_T), len(ids_T)), []).append(number)
        self._hashes = None

    def longest(self, ids_RT: Integers) -> Iterator[tuple[int, int, list[int]]]:
        """Yield row, length and the numbers of the longest sequences that begin a row, for rows that have any.

        The longest: a shorter one that begins the same was cut off there, and what follows would be padding.
        """
        if not self.by_hash:
            return
        if self._hashes is None or self._lengths is None:
            self._hashes = np.unique(np.array([key[0] for key in self.by_hash], dtype=np.uint64))
            self._lengths = np.unique(np.array([key[1] for key in self.by_hash], dtype=np.int64))
        lengths = self._lengths[self._lengths <= ids_RT.shape[1]]
        hashes_RL = hashes_of_beginnings(ids_RT)[:, lengths - 1]
        nearest_RL = np.minimum(np.searchsorted(self._hashes, hashes_RL), len(self._hashes) - 1)
        rows, places = np.nonzero(self._hashes[nearest_RL] == hashes_RL)
        met: dict[int, tuple[int, list[int]]] = {}
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            length = int(lengths[place])
            numbers = self.by_hash.get((int(hashes_RL[row, place]), length))
            if numbers is not None:
                met[row] = (length, numbers)
        for row, (length, numbers) in met.items():
            yield row, length, numbers
