"""A sample of whole sequences, spread evenly over a stream of unknown length, in fixed memory."""

import numpy as np

from rlaudit.tokens.token_batch import TokenBatch, concatenate


class SequenceSample:
    """Every n-th sequence of what was added; n doubles whenever more than twice `tokens` tokens are held."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._stride = 1
        self._seen = 0
        self._held: list[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], TokenBatch]] = []

    def add(self, batch: TokenBatch) -> None:
        """Offer the sequences of a batch."""
        numbers_S = np.arange(self._seen, self._seen + batch.sequences)
        self._seen += batch.sequences
        self._hold(numbers_S, batch)
        while len(self._held) and self.tokens > 2 * self._tokens and self.sequences > 1:
            self._stride *= 2
            held, self._held = self._held, []
            for numbers, part in held:
                self._hold(numbers, part)

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return sum(part.tokens for _, part in self._held)

    @property
    def sequences(self) -> int:
        """Sequences held."""
        return sum(part.sequences for _, part in self._held)

    def batch(self) -> TokenBatch | None:
        """Return what is held, as one batch; None if nothing was added."""
        return concatenate(part for _, part in self._held) if self._held else None

    def _hold(self, numbers_S: "np.ndarray[tuple[int], np.dtype[np.int64]]", batch: TokenBatch) -> None:
        chosen = np.flatnonzero(numbers_S % self._stride == 0)
        if chosen.size:
            self._held.append((numbers_S[chosen], batch if chosen.size == batch.sequences else batch.take(chosen)))
