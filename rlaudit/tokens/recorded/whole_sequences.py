"""The sequences of a recording that can be compared: whole completions of texts, with logprobs.

The others are counted by their reason: what was in flight, aborted or resumed has an end that no trainer was given, and
a prompt with images is not known by its ids.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.recording.kept_lines import TEXT, KeptRequest, KeptSequence
from rlaudit.recording.recorded_lines import Damage
from rlaudit.recording.recorded_process import Process
from rlaudit.recording.reused_blocks import Reused
from rlaudit.recording.weight_updates import ServedEngine
from rlaudit.tokens.recorded.sampling_groups import SamplingGroup, sampling_group

# A number, and what releases put behind it: `3`, `3-8f0c2a11` (0.15 and later), `3_parallel_sample_1` (V0).
NUMBERED = re.compile(r"(\d{1,12})(?:$|[-_])")
# More requests than any front end has, so that front * MOST_REQUESTS + place sorts by front end first.
MOST_REQUESTS = 1 << 40


class LeftOut(StrEnum):
    """Why a recorded sequence is in no figure."""

    IN_FLIGHT = "had not finished when the recording ended"
    ABORTED = "were aborted"
    RESUMED = "were resumed with other tokens"
    NOT_TEXT = "have a prompt that is more than text"
    NO_LOGPROBS = "have no logprobs, since none were requested"
    NAN_LOGPROBS = "have no logprob that is a number, though logprobs were requested"
    EMPTY = "have no token that the caller saw"
    NO_REQUEST = "have no request or prompt that can be read"
    NO_SAMPLING = "have no sampling parameters that can be read"
    DAMAGED = "do not fit together"


@dataclass(frozen=True, eq=False)
class RecordedFront:
    """One front end, with its clocks as arrays."""

    process: Process
    served: ServedEngine
    # Among the front ends of the recording.
    place: int
    # What the sequences of its engine took from the prefix cache.
    reused: Mapping[KeptSequence, Reused]

    @property
    def clock(self) -> str:
        """The name of its clock."""
        return self.process.clock

    def stamps_of(self, steps: Sequence[Sequence[int]]) -> Floats:
        """Return (T,) when each token came; NaN for steps that are in no line. steps: [first, count, tokens a step]."""
        numbers_T = np.concatenate([np.repeat(np.arange(first, first + count), each) for first, count, each in steps])
        stamps_T: Floats = self._stamps[np.minimum(numbers_T, len(self._stamps) - 1)]
        return stamps_T

    def versions_at(self, stamps_T: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return (T,) how many updates had ended at each stamp, NaN if unknown, and (T,) whether one went on."""
        begins, ends = self._edges
        unknown_T = np.isnan(stamps_T)
        version_T = np.where(unknown_T, np.nan, np.searchsorted(ends, stamps_T, side="right"))
        return version_T, np.searchsorted(begins, stamps_T, side="right") > version_T

    @cached_property
    def _stamps(self) -> Floats:
        return np.append(np.asarray(self.process.steps.stamps, dtype=np.float64), np.nan)

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        ends = [math.inf if update.end is None else update.end for update in self.served.updates]
        return np.array([update.begin for update in self.served.updates]), np.array(ends)


@dataclass(frozen=True, slots=True, eq=False)
class WholeSequence:
    """A completion of T tokens, as far as its caller saw them."""

    kept: KeptSequence
    front: RecordedFront
    sampling: SamplingGroup
    # Of its request among those of all front ends; None if it is unknown.
    order: int | None
    # Of the weights that sampled its last token; -1 if unknown.
    version: int
    # Tokens that were sampled while weights were updated, and tokens whose weights are unknown.
    inside: int
    unknown: int

    @property
    def prompt(self) -> str:
        """The hash of its prompt's ids."""
        return self.kept.prompt

    @property
    def prompt_ids(self) -> Integers:
        """The ids of its prompt."""
        return np.asarray(() if self.kept.prompt_ids is None else self.kept.prompt_ids.read(), dtype=np.int64)

    @property
    def tokens(self) -> int:
        """T."""
        return _seen(self.kept)

    @property
    def ids_T(self) -> Integers:
        """The ids of its tokens."""
        return np.asarray(self.kept.ids.read(), dtype=np.int64)[: self.tokens]

    @property
    def logprobs_T(self) -> Floats:
        """As the engine returned them."""
        logprobs = () if self.kept.logprobs is None else self.kept.logprobs.read()
        return np.asarray(logprobs, dtype=np.float64)[: self.tokens]

    @property
    def stamps_T(self) -> Floats:
        """When the step of each token ended, NaN if its line is lost."""
        return self.front.stamps_of(self.kept.steps)[: self.tokens]

    @property
    def step(self) -> int:
        """The number of its first token's step among those of its front end."""
        return self.kept.steps[0][0]

    @property
    def finished(self) -> float:
        """When it was written, on its front end's clock."""
        return self.kept.at

    @property
    def version_T(self) -> Floats:
        """The version of the weights that each token was sampled from, NaN if unknown."""
        return self.front.versions_at(self.stamps_T)[0]


def whole_sequences(
    front: RecordedFront, model: str, left_out: Counter[LeftOut], damage: Damage
) -> Iterator[WholeSequence]:
    """Yield the whole sequences of a front end; count the others in `left_out`, and name those that do not fit.

    model: keeps them apart from those of engines with another one; "" if all have the same.
    """
    process = front.process
    groups = {number: sampling_group(parameters, model) for number, parameters in process.sampling.items()}
    asks = {number for number, parameters in process.sampling.items() if parameters.get("logprobs") is not None}
    orders = _orders(process.requests)
    for kept in process.sequences:
        asked = kept.asked
        group = None if asked is None or asked.sampling is None else groups.get(asked.sampling)
        reason = _reason(kept, asked is not None and asked.sampling in asks, group)
        if reason is not None or asked is None or group is None:
            left_out[reason or LeftOut.NO_REQUEST] += 1
            if reason is LeftOut.DAMAGED:
                damage.add("a sequence whose ids, logprobs and steps have different numbers is left out", kept.line)
            continue
        version_T, inside_T = front.versions_at(front.stamps_of(kept.steps)[: _seen(kept)])
        unknown_T = np.isnan(version_T)
        yield WholeSequence(
            kept=kept,
            front=front,
            sampling=group,
            order=front.place * MOST_REQUESTS + orders[asked] if asked in orders else None,
            version=-1 if unknown_T[-1] else int(version_T[-1]),
            inside=int(inside_T.sum()),
            unknown=int(unknown_T.sum()),
        )


def _reason(kept: KeptSequence, asks_for_logprobs: bool, group: SamplingGroup | None) -> LeftOut | None:
    asked, tokens = kept.asked, sum(count * each for _, count, each in kept.steps)
    reasons = {
        LeftOut.NO_REQUEST: asked is None or kept.prompt_ids is None or asked.prompt != kept.prompt,
        LeftOut.NOT_TEXT: asked is not None and asked.parts not in (TEXT, None),
        LeftOut.IN_FLIGHT: kept.finish is None,
        LeftOut.ABORTED: kept.finish == "abort",
        LeftOut.RESUMED: kept.resumed is True,
        LeftOut.EMPTY: not _seen(kept),
        LeftOut.NAN_LOGPROBS: kept.logprobs is None and asks_for_logprobs,
        LeftOut.NO_LOGPROBS: kept.logprobs is None,
        LeftOut.NO_SAMPLING: group is None,
        LeftOut.DAMAGED: not tokens == len(kept.ids) == len(kept.logprobs or ()),
    }
    return next((reason for reason, met in reasons.items() if met), None)


def _seen(kept: KeptSequence) -> int:
    return len(kept.ids) if kept.visible is None else min(kept.visible, len(kept.ids))


def _orders(requests: Sequence[KeptRequest]) -> Mapping[KeptRequest, int]:
    """Return the place of each request in the order in which they were made; none if that is unknown.

    A trainer's rows mostly keep this order. vLLM's `LLM` numbers its requests, and the samples of one have indices. The
    order of the lines is another: V0 writes a request down only when its first token comes. Callers that name requests
    themselves leave the order unknown.
    """
    names = [NUMBERED.match(request.parent or request.request) for request in requests]
    indices = [min(request.index or 0, 1 << 20) for request in requests]
    samples = 1 + max(indices, default=0)
    places = [int(name.group(1)) * samples + index for name, index in zip(names, indices, strict=True) if name]
    if len(set(places)) < len(requests):
        return {}
    return dict(zip(requests, places, strict=True))
