"""Where recorded sequences begin in rows of token ids, among any number of sequences.

A trainer pads its rows or lays all sequences behind one another, so neither where a completion begins nor where it ends
is known. It begins with a row; behind ids that are no tokens (a masked prompt); or behind the last ids of its own
prompt, as many as the row has. It is met if the hash of all its tokens is that of as many ids of the row.

The hash of any part of a row comes from two sums over the row (`tokens/hashed_ids.py`), so thousands of tokens and of
lengths are looked up in one step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Integers
from rlaudit.recording.kept_lines import TrainerCall
from rlaudit.tokens.hashed_ids import Hashes, are_among, back_to_the_front, hash_of, prefix_sums, window_hashes
from rlaudit.tokens.recorded.whole_sequences import WholeSequence

# Ids of a prompt that are compared with what lies before a completion: those that the recorder writes of it.
CONTEXT = 64
# Of a prompt, before a completion's first id: without them no id is looked at.
BEHIND = 2
# Tokens: as many that no other sequence has are known behind any context, as that of a history that was rendered anew.
UNMISTAKABLE = 16
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
            self._anchors = np.unique(window_hashes(behind.T))
        firsts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        stretch_N = np.repeat(np.arange(len(lengths)), lengths)
        begins_N, anchored_N = self._places(ids_N, firsts, stretch_N, begins)
        sums = prefix_sums(ids_N)
        back = back_to_the_front(len(ids_N))
        places = np.flatnonzero(begins_N | anchored_N)
        block = max(_MOST_PARTS // len(self._lengths), 1)
        for places_P in (places[at : at + block] for at in range(0, len(places), block)):
            ends = firsts[stretch_N[places_P] + 1]
            until_PL = places_P[:, None] + self._lengths
            hashes_PL = (sums[np.minimum(until_PL, ends[:, None])] - sums[places_P][:, None]) * back[places_P][:, None]
            met_PL = are_among(self._hashes, hashes_PL) & (until_PL <= ends[:, None])
            last = -1
            # Of each place the longest first.
            for at, column in zip(*np.nonzero(met_PL[:, ::-1]), strict=True):
                if at == last:
                    continue
                place, length = int(places_P[at]), int(self._lengths[-1 - column])
                alike = self.by_hash.get((int(hashes_PL[at, -1 - column]), length), [])
                if not begins_N[place]:
                    before = ids_N[max(int(firsts[stretch_N[place]]), place - CONTEXT) : place]
                    in_context = [sequence for sequence in alike if _ends_alike(sequence.prompt_ids[-CONTEXT:], before)]
                    is_unmistakable = len(alike) == 1 and length >= UNMISTAKABLE
                    alike = alike if is_unmistakable else in_context
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
            anchored_N[BEHIND:] = are_among(self._anchors, window_hashes(windows))
            anchored_N &= np.arange(len(ids_N)) - firsts[stretch_N] >= BEHIND
        return begins_N, anchored_N


def _ends_alike(prompt_T: Integers, before_T: Integers) -> bool:
    """Return whether what lies before a completion is the end of its prompt, as far as both are known."""
    count = min(len(prompt_T), len(before_T))
    return np.array_equal(prompt_T[len(prompt_T) - count :], before_T[len(before_T) - count :])
