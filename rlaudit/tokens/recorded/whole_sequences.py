"""The sequences of a recording that can be compared: whole completions of texts, with logprobs.

The others are counted by their reason: what was in flight, aborted or resumed has an end that no trainer was given, and
a prompt with images is not known by its ids.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.recording.encoded_numbers import NotNumbers, float32s, whole_numbers
from rlaudit.recording.recorded_lines import Damage
from rlaudit.recording.recorded_process import token_records
from rlaudit.recording.weight_updates import ServedWeights
from rlaudit.tokens.recorded.sampling_groups import SamplingGroup, sampling_group

TEXT = "text"
# A number, and what releases put behind it: `3`, `3-8f0c2a11` (0.15 and later), `3_parallel_sample_1` (V0).
NUMBERED = re.compile(r"(\d{1,12})(?:$|[-_])")


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
class WholeSequence:
    """A completion of T tokens, as far as its caller saw them."""

    # Among all that are whole, from 0.
    number: int
    line: int
    # The place of its request among those of the front end.
    asked: int
    request: str
    # The hash of prompt_ids.
    prompt: str
    prompt_ids: Integers
    sampling: SamplingGroup
    lora: str | None
    ids_T: Integers
    logprobs_T: Floats
    # When the step of each token ended, NaN if its line is lost.
    stamps_T: Floats
    # The number of its first token's step among those of its front end.
    step: int
    cached: int | None
    # When it was written.
    finished: float


@dataclass
class RequestOrder:
    """The requests of one front end, as they are met; a trainer's rows mostly keep the order in which they were made.

    vLLM's `LLM` numbers its requests, and the samples of one have indices. The order of the lines is another: V0 writes
    a request down only when its first token comes. Callers that name requests themselves leave the order unknown.
    """

    numbers: list[tuple[int, int]] = field(default_factory=list)
    is_numbered: bool = True

    def add(self, request: Mapping[str, Any]) -> int:
        """Note a request and return its place among all lines."""
        name = NUMBERED.match(request["parent"] or request["request"])
        self.is_numbered = self.is_numbered and name is not None
        self.numbers.append((int(name.group(1)) if name else 0, min(request["index"] or 0, 1 << 20)))
        return len(self.numbers) - 1

    def orders(self) -> Sequence[int] | None:
        """Return the order of each line; None if it is unknown."""
        if self.is_numbered and len(set(self.numbers)) == len(self.numbers):
            samples = 1 + max((index for _, index in self.numbers), default=0)
            return [number * samples + index for number, index in self.numbers]
        return None


@dataclass
class WholeSequences:
    """The whole sequences of one front end, read anew by each iteration."""

    served: ServedWeights
    # Keeps them apart from those of engines with another one; "" if all have the same.
    model: str = ""
    # Of their requests.
    order: RequestOrder = field(default_factory=RequestOrder)
    # How many are not, and why.
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    # The lines of those that do not fit together.
    damage: Damage = field(default_factory=lambda: Damage(""))

    @cached_property
    def _groups(self) -> Mapping[int, SamplingGroup]:
        return {
            number: sampling_group(parameters, self.model) for number, parameters in self.served.front.sampling.items()
        }

    def __iter__(self) -> Iterator[WholeSequence]:
        """Read the file again. The counts are those of the last time."""
        front = self.served.front
        self.left_out, self.damage, self.order = Counter(), Damage(front.file.name), RequestOrder()
        prompts: dict[str, Integers] = {}
        requests: dict[str, dict[str, Any]] = {}
        stamps = np.asarray(self.served.steps.stamps, dtype=np.float64)
        number = 0
        for line, record in token_records(front, ("prompt", "request", "sequence")):
            try:
                if record["kind"] == "prompt":
                    prompts[record["prompt"]] = np.asarray(whole_numbers(record["ids"]), dtype=np.int32)
                elif record["kind"] == "request":
                    requests[record["request"]] = {**record, "asked": self.order.add(record)}
                else:
                    request = requests.pop(record["request"], None)
                    sequence = self._whole(number, line, record, request, prompts, stamps)
                    if isinstance(sequence, LeftOut):
                        self.left_out[sequence] += 1
                    else:
                        number += 1
                        yield sequence
            except (NotNumbers, _Misfit) as error:
                self.left_out[LeftOut.DAMAGED] += record["kind"] == "sequence"
                self.damage.add(f"a {record['kind']} whose numbers are wrong is left out: {error}", line)

    def _asks_for_logprobs(self, request: Mapping[str, Any]) -> bool:
        return self.served.front.sampling.get(request["sampling"], {}).get("logprobs") is not None

    def _whole(
        self,
        number: int,
        line: int,
        record: Mapping[str, Any],
        request: Mapping[str, Any] | None,
        prompts: Mapping[str, Integers],
        stamps: Floats,
    ) -> WholeSequence | LeftOut:
        reason = _reason(record, request, prompts)
        if reason is LeftOut.NO_LOGPROBS and request is not None and self._asks_for_logprobs(request):
            return LeftOut.NAN_LOGPROBS
        if reason is not None or request is None:
            return reason or LeftOut.NO_REQUEST
        sampling = self._groups.get(request["sampling"])
        if sampling is None:
            return LeftOut.NO_SAMPLING
        ids_T, logprobs_T = whole_numbers(record["ids"]), float32s(record["logprobs"])
        if len(ids_T) != len(logprobs_T):
            raise _Misfit(f"{len(ids_T)} ids, {len(logprobs_T)} logprobs")
        seen = len(ids_T) if record["visible"] is None else min(record["visible"], len(ids_T))
        if not seen:
            return LeftOut.EMPTY
        stamps_T = _stamps(record["steps"], len(ids_T), stamps)
        return WholeSequence(
            number=number,
            line=line,
            asked=request["asked"],
            request=record["request"],
            prompt=record["prompt"],
            prompt_ids=prompts[record["prompt"]].astype(np.int64),
            sampling=sampling,
            lora=request["lora"],
            ids_T=np.asarray(ids_T, dtype=np.int64)[:seen],
            logprobs_T=np.asarray(logprobs_T, dtype=np.float64)[:seen],
            stamps_T=stamps_T[:seen],
            step=next(first for first, _, each in record["steps"] if each),
            cached=record["cached"],
            finished=record["at"],
        )


class _Misfit(ValueError):
    """Numbers of one record that do not fit together."""


def _reason(
    record: Mapping[str, Any], request: Mapping[str, Any] | None, prompts: Mapping[str, NDArray[Any]]
) -> LeftOut | None:
    reasons = {
        LeftOut.NO_REQUEST: request is None or record["prompt"] not in prompts or request["prompt"] != record["prompt"],
        LeftOut.NOT_TEXT: request is not None and request["parts"] not in (TEXT, None),
        LeftOut.IN_FLIGHT: record["finish"] is None,
        LeftOut.ABORTED: record["finish"] == "abort",
        LeftOut.RESUMED: record["resumed"] is True,
        LeftOut.EMPTY: not record["ids"],
        LeftOut.NO_LOGPROBS: record["logprobs"] is None,
    }
    return next((reason for reason, met in reasons.items() if met), None)


def _stamps(steps: list[list[int]], tokens: int, stamps: Floats) -> Floats:
    """Return when each token came; NaN for steps that are in no line. steps: [first, count, tokens a step].

    Raises _Misfit if steps and ids have different numbers of tokens.
    """
    if sum(count * each for _, count, each in steps) != tokens:
        raise _Misfit(f"steps of {sum(count * each for _, count, each in steps)} tokens, {tokens} ids")
    numbers_T = np.concatenate([np.repeat(np.arange(first, first + count), each) for first, count, each in steps])
    stamps_T: Floats = np.append(stamps, np.nan)[np.minimum(numbers_T, len(stamps))]
    return stamps_T
