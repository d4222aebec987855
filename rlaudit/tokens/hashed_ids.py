"""Hashes of token ids, of 64 bits: of the beginning of a row up to each place, and of a window at each place.

With them thousands of stretches are looked up in one step. A million sequences and a thousand million parts meet by
chance in one of twenty thousand logs.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Integers

Hashes = NDArray[np.uint64]

# What a place in a row counts, to the power of the place, and the number that takes one power away (modulo 2**64).
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)


def hash_of(ids_N: Integers) -> int:
    """Return the hash of all ids."""
    return int(prefix_sums(ids_N)[-1])


def prefix_sums(ids_N: Integers) -> Hashes:
    """Return (N + 1,): the hash of the ids before each place."""
    with np.errstate(over="ignore"):
        mixed_N = _mixed(ids_N.astype(np.int64).view(np.uint64)) * _powers(_BASE, len(ids_N))
        return np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed_N, dtype=np.uint64)])


def back_to_the_front(count: int) -> Hashes:
    """Return (count,): what makes a difference of prefix sums from each place the hash of the ids in between."""
    return _powers(_INVERSE, count)


def window_hashes(ids_WN: Integers) -> Hashes:
    """Return (N,) hashes of the W ids in each column."""
    hashes = np.zeros(ids_WN.shape[1], dtype=np.uint64)
    for ids_N in ids_WN:
        hashes = _mixed(hashes + ids_N.astype(np.int64).view(np.uint64))
    return hashes


def windows_between(sums: Hashes, width: int) -> Hashes:
    """Return hashes of the windows of so many ids, by the prefix sums of a whole row; none if there are fewer ids."""
    count = len(sums) - width
    if count < 1:
        return np.zeros(0, dtype=np.uint64)
    return (sums[width:] - sums[:-width]) * back_to_the_front(count)


class KnownHashes:
    """Many hashes, to look others up among them: a table of bits decides for most in one step each."""

    def __init__(self, hashes: Hashes) -> None:
        self.ordered = np.unique(hashes)
        bits = max(10, (16 * len(self.ordered)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._may_be = np.zeros(1 << bits, dtype=np.bool_)
        self._may_be[self.ordered >> self._shift] = True

    def places_in(self, hashes: Hashes) -> Integers:
        """Return where the known ones stand among these."""
        places = np.flatnonzero(self._may_be[hashes >> self._shift])
        return places[are_among(self.ordered, hashes[places])]


def are_among(ordered: Hashes, values: Hashes) -> NDArray[np.bool_]:
    """Return which values are among ordered ones, in the time of a look-up each (`np.isin` sorts all anew)."""
    if not len(ordered):
        return np.zeros(values.shape, dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    are_equal: NDArray[np.bool_] = ordered[nearest] == values
    return are_equal


def _powers(base: int, count: int) -> Hashes:
    """Return base to the power of 0, 1, ..., count - 1."""
    return _first_powers(base, 1 << max(count - 1, 1).bit_length())[:count]


@lru_cache(maxsize=8)
def _first_powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """Return values whose bits all depend on all bits: splitmix64 (Steele, Lea and Flood, 2014)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
