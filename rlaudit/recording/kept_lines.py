"""What a process wrote of its tokens and weights, line by line, with its arrays on the disk.

Standard library only: `inspect` asks for some of them, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.recording.column import Column

TEXT = "text"


@dataclass(frozen=True, slots=True, eq=False)
class KeptRequest:
    """A request whose prompt was kept. None: not known."""

    request: str
    prompt: str
    parent: str | None
    # Of the samples of its parent.
    index: int | None
    # The number of its sampling parameters.
    sampling: int | None
    # "text", or what else its prompt holds.
    parts: str | None
    salted: bool | None
    lora: str | None
    # Of several that the process built.
    engine: int | None


@dataclass(frozen=True, slots=True, eq=False)
class KeptSequence:
    """A sequence with all its tokens. None: not known."""

    line: int
    # When it was written.
    at: float
    # None: its line is lost.
    asked: KeptRequest | None
    request: str
    prompt: str
    # None: in no line before this one.
    prompt_ids: Column | None
    ids: Column
    # None: not requested, or no number.
    logprobs: Column | None
    # [first, count, tokens of each].
    steps: Sequence[Sequence[int]]
    # Tokens of the prompt from the prefix cache.
    cached: int | None
    # None: it had not finished.
    finish: str | None
    # How many tokens the caller saw.
    visible: int | None
    resumed: bool | None
    engine: int | None

    @property
    def lora(self) -> str | None:
        """Its adapter, as far as its request is known."""
        return None if self.asked is None else self.asked.lora

    @property
    def first_step(self) -> int | None:
        """The step of its first token; None if it has no token."""
        return self.steps[0][0] if self.steps else None


@dataclass(frozen=True, slots=True, eq=False)
class TrainerCall:
    """A call of the function in which a trainer makes its logprobs."""

    line: int
    at: float
    gradients: bool
    # Whether it repeats another one inside a backward pass.
    backward: bool
    # "old" or "reference", by a method of the framework's.
    asked_for: str | None
    model: Mapping[str, Any]
    # Of each stretch: the row of the function, its first place there, and how many ids it has.
    rows: Sequence[int]
    begins: Sequence[int]
    lengths: Sequence[int]
    ids: Column
    logprobs: Column

    @property
    def fits(self) -> bool:
        """Whether stretches, ids and logprobs belong together."""
        spans = len(self.rows) == len(self.begins) == len(self.lengths)
        return spans and sum(self.lengths) == len(self.ids) == len(self.logprobs)


@dataclass(frozen=True, slots=True, eq=False)
class WeightsRead:
    """A few elements of each tensor, read at one moment. tensors, sent: numbers of sets of tensors."""

    at: float
    # The last load before it.
    load: int | None
    tensors: int
    values: Column
    # What updates brought since the last reading; None for nothing.
    sent: int | None
    values_sent: Column | None
    # Each None if it is as the one before it.
    values_rounded: Column | None
    values_held: Column | None
