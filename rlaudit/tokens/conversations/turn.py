"""Turns: requests with the ids of their prompts and of what was sampled, collected while a log is read."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# Ids of prompts and completions together, 4 bytes each: what is beyond is not searched for conversations.
MOST_IDS = 50_000_000


@dataclass(frozen=True, eq=False)
class Turn:
    """A request. prompt: its ids. sampled: of its completion, one at least."""

    # Of its prompt and of its sample, and the step, as the log has them.
    name: tuple[str, str, str]
    prompt: Integers
    sampled: Integers
    # Whether the trainer scored a token of it that its loss counts.
    trained: bool

    @property
    def whole(self) -> Integers:
        """What was sent and sampled, which the prompt of the next turn should begin with."""
        return np.concatenate([self.prompt, self.sampled])


def names_of(batch: TokenBatch) -> list[tuple[str, str, str]]:
    """Return the name of each sequence of a batch."""
    steps = batch.sequence_columns.get("step", [""] * batch.sequences)
    return [(str(a), str(b), str(c)) for a, b, c in zip(batch.prompt_names_S, batch.sample_names_S, steps, strict=True)]


@dataclass
class Turns:
    """The turns of a log, as far as it has their ids."""

    turns: list[Turn] = field(default_factory=list)
    # Turns beyond MOST_IDS.
    beyond: int = 0
    _ids: int = 0

    def watch(self, batches: Iterator[TokenBatch]) -> Iterator[TokenBatch]:
        """Pass the batches on and keep their turns."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: TokenBatch) -> None:
        """Keep the turns of a batch whose prompts and tokens have ids."""
        if batch.prompt_token_ids_S is None or batch.has_hashed_ids:
            return
        trained_S = np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) > 0
        names = names_of(batch)
        for place, prompt in enumerate(batch.prompt_token_ids_S):
            sampled = batch.token_id_T[batch.offsets[place] : batch.offsets[place + 1]]
            if (sampled == NO_TOKEN).any():
                continue
            self._ids += len(prompt) + len(sampled)
            if self._ids > MOST_IDS:
                self.beyond += 1
                continue
            turn = Turn(names[place], prompt.astype(np.int32), sampled.astype(np.int32), bool(trained_S[place]))
            self.turns.append(turn)
