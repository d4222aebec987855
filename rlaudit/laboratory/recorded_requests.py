"""What a recording's training asked of its engine, to be asked again: prompts, groups, waves, and what was sampled.

A prompt is its token ids, so no tokenizer and no template is needed. Prompts that were asked under the same weights (a
step of a trainer that waits for its rollouts) are asked again as one wave. Within it each arrives after as many steps
of the engine as it did then, so that as many requests run beside one another at any speed of the machine.
What was sampled from the weights of the first token is kept beside the requests: an engine with the checkpoint's
weights must return the like when it is asked again, or what it returns is about another run.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.configs.vllm_inputs.recorded_config import generation
from rlaudit.errors import NotFinished
from rlaudit.recorder.recorded_engine import recorded_engines
from rlaudit.recorder.recorded_process import token_records
from rlaudit.tokens.recorded.recorded_log import RecordedFront, RecordedLog, recorded_log
from rlaudit.tokens.recorded.whole_sequences import WholeSequence

# Of each completion, where not all of its tokens can be asked again.
FEWEST_PLACES = 8
# Of prompts that are longer than this, fewer tokens are asked again.
USUAL_PROMPT = 256
# Of a training without updates all completions are of the first weights: enough for any figure here.
MOST_COMPLETIONS = 4096


@dataclass(frozen=True)
class Completion:
    """One recorded completion. prompt: its place among the prompts; sample: among the completions of its prompt."""

    prompt: int
    sample: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    cached_tokens: int | None

    def as_row(self) -> dict[str, Any]:
        """Return it as an engine's samples are written."""
        return {
            "prompt": self.prompt,
            "sample": self.sample,
            "token_ids": list(self.token_ids),
            "logprobs": list(self.logprobs),
            # The recorded engine was asked for no other token's logprob.
            "top_ids": [[token] for token in self.token_ids],
            "top_logprobs": [[logprob] for logprob in self.logprobs],
            "cached_tokens": self.cached_tokens,
            "finish_reason": "recorded",
        }


@dataclass(frozen=True)
class RecordedRequests:
    """Requests of one kind of sampling, in the order in which they were made.

    prompts: distinct ones, as token ids. wave_P: with which wave each was first asked; arrival_P: after how many steps
    of the engine since that wave's first token. samples: completions that most
    prompts were asked for. longest: the most tokens of a completion. completions: what was sampled from the first
    weights, as an engine with the checkpoint's is held against it.
    of_prompts, of_sequences: how many prompts and whole completions the recording holds; adapted: how many of these
    completions a LoRA adapter had a part in. effective: the resolved
    configuration of the engine, {section: {field: value}}; generation: V0 or V1; trainer_dtype: of the model whose
    logprobs the loss uses. None for what is unknown.
    """

    prompts: tuple[tuple[int, ...], ...]
    wave_P: tuple[int, ...]
    arrival_P: tuple[int, ...]
    samples: int
    longest: int
    completions: tuple[Completion, ...]
    of_prompts: int
    of_sequences: int
    adapted: int
    effective: Mapping[str, Any]
    generation: str | None
    trainer_dtype: str | None

    def tokens(self, most: int) -> list[tuple[Completion, int]]:
        """Return completions, each with the place of one of its tokens: at most so many, spread over completions."""
        lengths = np.array([len(one.token_ids) for one in self.completions])
        # Each token is a prefill of the whole prompt before it.
        prompts = [len(self.prompts[one.prompt]) for one in self.completions]
        most = max(1, most * USUAL_PROMPT // max([USUAL_PROMPT, *prompts]))
        # What short completions leave of their share goes to the longer ones.
        shares = range(self.longest + 1)
        each = bisect_left(shares, most, lo=FEWEST_PLACES, key=lambda share: int(np.minimum(lengths, share).sum()))
        places = ((one, place) for one in self.completions for place in _spread(len(one.token_ids), each))
        return list(islice(places, most))

    def first(self, prompts: int, tokens: int) -> "RecordedRequests":
        """Return the requests of the first so many prompts, with so many tokens of each completion.

        Requests that are shorter arrive as much sooner.
        """
        kept = (one for one in self.completions if one.prompt < prompts)
        longest = min(tokens, self.longest)
        return replace(
            self,
            prompts=self.prompts[:prompts],
            wave_P=self.wave_P[:prompts],
            arrival_P=tuple(arrival * longest // self.longest for arrival in self.arrival_P[:prompts]),
            longest=longest,
            completions=tuple(
                replace(one, token_ids=one.token_ids[:tokens], logprobs=one.logprobs[:tokens]) for one in kept
            ),
        )


@dataclass
class _Asked:
    """A prompt. wave: of its first request, and arrival in it; counts: completions by wave; first: those of the first
    weights."""

    ids: tuple[int, ...]
    wave: int
    arrival: int
    counts: Counter[int] = field(default_factory=Counter)
    first: list[WholeSequence] = field(default_factory=list)


def recorded_requests(path: Path) -> RecordedRequests:
    """Read the requests of most tokens' sampling parameters.

    Raises NotFinished for what is no recording, for a redacted one, and for one without a whole completion.
    """
    log = recorded_log(path)
    if any(process.redacted for process in log.recording.processes):
        raise NotFinished(
            f"{path} is redacted: hashes stand for its token ids", "it can be read, and not be asked again"
        )
    engine = next((one for one in recorded_engines(log.recording) if one.started), None)
    if engine is None:
        raise NotFinished(f"{path} holds no engine that started", "nothing of it can be asked again")
    asked: dict[str, _Asked] = {}
    sequences = longest = kept = adapted = 0
    for front in log.fronts:
        begins: dict[int, int] = {}
        own: dict[str, _Asked] = {}
        for sequence in front.whole:
            if front.first + sequence.number not in log.numbers:
                continue
            stamp = float(sequence.stamps_T[0])
            begun = front.served.version_at(stamp if math.isfinite(stamp) else sequence.finished)
            held = asked.get(sequence.prompt)
            if held is None:
                ids = tuple(map(int, sequence.prompt_ids))
                held = asked[sequence.prompt] = own[sequence.prompt] = _Asked(ids, begun, sequence.step)
            if held.wave == begun and sequence.prompt in own:
                held.arrival = min(held.arrival, sequence.step)
            begins[begun] = min(begins.get(begun, sequence.step), sequence.step)
            held.counts[begun] += 1
            sequences += 1
            adapted += sequence.lora is not None
            longest = max(longest, len(sequence.ids_T))
            if kept < MOST_COMPLETIONS and _of_first_weights(front, sequence):
                kept += 1
                held.first.append(sequence)
        for one in own.values():
            one.arrival -= begins[one.wave]
    if not asked:
        raise NotFinished(f"{path} holds no whole completion with logprobs", "nothing of it can be asked again")
    ordered = sorted(asked.values(), key=lambda one: (one.wave, one.arrival))
    return RecordedRequests(
        prompts=tuple(one.ids for one in ordered),
        wave_P=tuple(one.wave for one in ordered),
        arrival_P=tuple(one.arrival for one in ordered),
        samples=_usual(max(one.counts.values()) for one in ordered),
        longest=longest,
        completions=tuple(
            Completion(
                prompt,
                sample,
                tuple(map(int, sequence.ids_T)),
                tuple(map(float, sequence.logprobs_T)),
                sequence.cached,
            )
            for prompt, one in enumerate(ordered)
            for sample, sequence in enumerate(one.first)
        ),
        of_prompts=len(asked),
        of_sequences=sequences,
        adapted=adapted,
        effective=engine.engine.effective or {},
        generation=generation(engine),
        trainer_dtype=_trainer_dtype(log),
    )


def _of_first_weights(front: RecordedFront, sequence: WholeSequence) -> bool:
    versions_T, _ = front.versions_at(sequence.stamps_T)
    return bool((versions_T == front.served.first_sampled).all())


def _trainer_dtype(log: RecordedLog) -> str | None:
    """Return the dtype of the model that the trainer's function was first called with gradients on."""
    for process in log.recording.processes:
        for _, record in token_records(process, ("trainer",)):
            if record["gradients"] and record["model"]:
                return str(record["model"]["dtype"]).removeprefix("torch.")
    return None


def _spread(length: int, places: int) -> Iterator[int]:
    """Yield so many places in a completion, or all, from its first token on and evenly."""
    count = min(length, places)
    return (number * length // count for number in range(count))


def _usual(counts: Iterable[int]) -> int:
    return Counter(counts).most_common(1)[0][0]


def described(requests: RecordedRequests, samples: int) -> str:
    """Say how much of the recording is asked again. samples: completions of each prompt."""
    waves, later = len(set(requests.wave_P)), sum(arrival > 0 for arrival in requests.arrival_P)
    meanwhile = f", {later} prompts while others run, by steps as recorded" if later else ""
    asked = len(requests.prompts) * samples
    return (
        f"{len(requests.prompts)} of {requests.of_prompts} recorded prompts, {asked} completions ({samples} each; "
        f"{requests.of_sequences} recorded), in {waves} wave{'s' * (waves > 1)}{meanwhile}; recorded "
        f"completions of the first weights: {len(requests.completions)}"
    )
