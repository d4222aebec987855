"""Where recorded sequences begin in rows of token ids, among any number of sequences.

A trainer pads its rows or lays all sequences behind one another, so neither where a completion begins nor where it ends
is known. It begins with a row; behind ids that are no tokens (a masked prompt); or behind the last ids of its own
prompt, as many as the row has. It is met if the hash of all its tokens is that of as many ids of the row.

The hash of any part of a row comes from two sums over the row, so thousands of tokens and of lengths are looked up in
one step. With hashes of 64 bits a million sequences and a thousand million parts meet by chance in one of twenty
thousand recordings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Integers
from rlaudit.recording.kept_lines import TrainerCall
from rlaudit.tokens.recorded.whole_sequences import WholeSequence

Hashes = NDArray[np.uint64]

# Ids of a prompt that are compared with what lies before a completion: those that the recorder writes of it.
CONTEXT = 64
# Of a prompt, before a completion's first id: without them no id is looked at.
BEHIND = 2
# What a place in a row counts, to the power of the place, and the number that takes one power away (modulo 2**64).
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
# Parts of a row that are looked up at once: some 100 MB.
_MOST_PARTS = 1 << 21


@dataclass(frozen=True)
class Found:
    """A sequence that lies in a stretch of a row."""

    stretch: int
    # Of its tokens among all ids.
    first: int
    length: int
    # Which it may be: all have these tokens.
    alike: Sequence[WholeSequence]


def hash_of(ids_T: Integers) -> int:
    """Return the hash of all ids."""
    return int(_sums(ids_T)[-1])


def _sums(ids_N: Integers) -> Hashes:
    """Return (N + 1,): sums of what the ids before each place count."""
    with np.errstate(over="ignore"):
        mixed_N = _mixed(ids_N.astype(np.int64).view(np.uint64)) * _powers(_BASE, len(ids_N))
        return np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed_N, dtype=np.uint64)])


def _powers(base: int, count: int) -> Hashes:
    """Return base to the power of 0, 1, ..., count - 1."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """Return values whose bits all depend on all bits: splitmix64 (Steele, Lea and Flood, 2014)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class Beginnings:
    """Sequences by the hash of all their tokens and their length."""

    def __init__(self) -> None:
        self.by_hash: dict[tuple[int, int], list[WholeSequence]] = {}
        self._behind: set[tuple[int, ...]] = set()
        self._hashes: Hashes | None = None
        self._lengths: Integers | None = None
        self._anchors: Hashes = np.zeros(0, dtype=np.uint64)

    def add(self, sequence: WholeSequence) -> None:
        """Add a sequence."""
        ids_T, prompt_T = sequence.ids_T, sequence.prompt_ids
        self.by_hash.setdefault((hash_of(ids_T), len(ids_T)), []).append(sequence)
        if len(prompt_T) >= BEHIND:
            self._behind.add((*prompt_T[-BEHIND:].tolist(), int(ids_T[0])))
        self._hashes = None

    def find(self, call: TrainerCall) -> Iterator[Found]:
        """Yield the longest sequence at each place of a call where one begins, in the order of the ids.

        The longest: a shorter one that begins the same was cut off there, and what follows would be padding.
        """
        ids_N, begins, lengths = (
            np.asarray(column, dtype=np.int64) for column in (call.ids.read(), call.begins, call.lengths)
        )
        if not self.by_hash or not len(ids_N):
            return
        if self._hashes is None or self._lengths is None:
            self._hashes = np.unique(np.array([key[0] for key in self.by_hash], dtype=np.uint64))
            self._lengths = np.unique(np.array([key[1] for key in self.by_hash], dtype=np.int64))
            behind = np.array(sorted(self._behind), dtype=np.int64).reshape(-1, BEHIND + 1)
            self._anchors = np.unique(_windows(behind.T))
        firsts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        stretch_N = np.repeat(np.arange(len(lengths)), lengths)
        begins_N, anchored_N = self._places(ids_N, firsts, stretch_N, begins)
        sums = _sums(ids_N)
        back = _powers(_INVERSE, len(ids_N))
        places = np.flatnonzero(begins_N | anchored_N)
        block = max(_MOST_PARTS // len(self._lengths), 1)
        for places_P in (places[at : at + block] for at in range(0, len(places), block)):
            ends = firsts[stretch_N[places_P] + 1]
            until_PL = places_P[:, None] + self._lengths
            hashes_PL = (sums[np.minimum(until_PL, ends[:, None])] - sums[places_P][:, None]) * back[places_P][:, None]
            met_PL = _are_among(self._hashes, hashes_PL) & (until_PL <= ends[:, None])
            last = -1
            # Of each place the longest first.
            for at, column in zip(*np.nonzero(met_PL[:, ::-1]), strict=True):
                if at == last:
                    continue
                place, length = int(places_P[at]), int(self._lengths[-1 - column])
                alike = self.by_hash.get((int(hashes_PL[at, -1 - column]), length), [])
                if not begins_N[place]:
                    before = ids_N[max(int(firsts[stretch_N[place]]), place - CONTEXT) : place]
                    alike = [sequence for sequence in alike if _ends_alike(sequence.prompt_ids[-CONTEXT:], before)]
                if alike:
                    last = at
                    yield Found(int(stretch_N[place]), place, length, alike)

    def _places(
        self, ids_N: Integers, firsts: Integers, stretch_N: Integers, begins: Integers
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return (N,) where a sequence may begin behind anything, and (N,) where one may behind its prompt."""
        begins_N = np.zeros(len(ids_N), dtype=np.bool_)
        begins_N[1:] = (ids_N[1:] >= 0) & (ids_N[:-1] < 0)
        starts = firsts[:-1][firsts[1:] > firsts[:-1]]
        begins_N[starts] = begins[stretch_N[starts]] == 0
        anchored_N = np.zeros(len(ids_N), dtype=np.bool_)
        if len(ids_N) > BEHIND:
            windows = np.stack([ids_N[at : len(ids_N) - BEHIND + at] for at in range(BEHIND + 1)])
            anchored_N[BEHIND:] = _are_among(self._anchors, _windows(windows))
            anchored_N &= np.arange(len(ids_N)) - firsts[stretch_N] >= BEHIND
        return begins_N, anchored_N


def _are_among(ordered: Hashes, values: Hashes) -> NDArray[np.bool_]:
    """Return which values are among ordered ones, in the time of a look-up each (`np.isin` sorts all anew)."""
    if not len(ordered):
        return np.zeros(values.shape, dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    are_equal: NDArray[np.bool_] = ordered[nearest] == values
    return are_equal


def _windows(ids_WN: Integers) -> Hashes:
    """Return (N,) hashes of the W ids in each column."""
    hashes = np.zeros(ids_WN.shape[1], dtype=np.uint64)
    for ids_N in ids_WN:
        hashes = _mixed(hashes + ids_N.astype(np.int64).view(np.uint64))
    return hashes


def _ends_alike(prompt_T: Integers, before_T: Integers) -> bool:
    """Return whether what lies before a completion is the end of its prompt, as far as both are known."""
    count = min(len(prompt_T), len(before_T))
    return np.array_equal(prompt_T[len(prompt_T) - count :], before_T[len(before_T) - count :])
