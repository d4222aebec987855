"""The requests of a recorded training, to be replayed: prompts, groups, waves, and what was sampled.

A prompt is its token ids, so no tokenizer and no template is needed. Prompts that were requested under the same weights
(a step of a trainer that waits for its rollouts) are replayed as one wave. Within it each arrives after the recorded
number of engine steps, so the same number of requests run side by side at any speed of the machine.
Completions that were sampled from the first weights are kept beside the requests: an engine with the checkpoint's
weights must return similar ones, or the replay is about another run.
"""

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.configs.engine_arguments.recorded_config import generation
from rlaudit.errors import NotFinished
from rlaudit.tokens.recorded.recorded_log import RecordedLog, recorded_log
from rlaudit.tokens.recorded.whole_sequences import WholeSequence

# The fewest tokens of a completion that are replayed if not all can be.
FEWEST_PLACES = 8
# If prompts are longer than this, fewer tokens are replayed.
USUAL_PROMPT = 256
# In a training without updates all completions are of the first weights: so many are enough for any figure here.
MOST_COMPLETIONS = 4096


@dataclass(frozen=True)
class Completion:
    """One recorded completion."""

    # Its place among the prompts.
    prompt: int
    # Its place among the completions of its prompt.
    sample: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    cached_tokens: int | None

    def as_row(self) -> dict[str, Any]:
        """Return it in the form of an engine's samples."""
        return {
            "prompt": self.prompt,
            "sample": self.sample,
            "token_ids": list(self.token_ids),
            "logprobs": list(self.logprobs),
            # Logprobs of other tokens are not recorded.
            "top_ids": [[token] for token in self.token_ids],
            "top_logprobs": [[logprob] for logprob in self.logprobs],
            "cached_tokens": self.cached_tokens,
            "finish_reason": "recorded",
        }


@dataclass(frozen=True)
class RecordedRequests:
    """Requests with the same sampling parameters, in the order in which they were made."""

    # Distinct ones, as token ids.
    prompts: tuple[tuple[int, ...], ...]
    # The wave in which each was first requested.
    wave_P: tuple[int, ...]
    # How many steps of the engine after that wave's first token each arrived.
    arrival_P: tuple[int, ...]
    # The number of completions that most prompts have.
    samples: int
    # Tokens of the longest completion.
    longest: int
    # Those that were sampled from the first weights, which an engine with the checkpoint's weights must reproduce.
    completions: tuple[Completion, ...]
    # Prompts and whole completions of the recording, and how many of these completions used a LoRA adapter.
    of_prompts: int
    of_sequences: int
    adapted: int
    # The resolved configuration of the engine, {section: {field: value}}.
    effective: Mapping[str, Any]
    # V0 or V1; None if unknown.
    generation: str | None
    # Of the model whose logprobs the loss uses; None if unknown.
    trainer_dtype: str | None

    def tokens(self, most: int) -> list[tuple[Completion, int]]:
        """Return places of at most so many tokens, each with its completion, spread over all completions."""
        lengths = np.array([len(completion.token_ids) for completion in self.completions])
        # Each token is a prefill of the whole prompt before it.
        prompt_lengths = [len(self.prompts[completion.prompt]) for completion in self.completions]
        most = max(1, most * USUAL_PROMPT // max([USUAL_PROMPT, *prompt_lengths]))
        # The unused share of short completions goes to the longer ones.
        shares = range(self.longest + 1)
        share = bisect_left(shares, most, lo=FEWEST_PLACES, key=lambda share: int(np.minimum(lengths, share).sum()))
        places = (
            (completion, place)
            for completion in self.completions
            for place in _spread(len(completion.token_ids), share)
        )
        return list(islice(places, most))

    def first(self, prompts: int, tokens: int) -> "RecordedRequests":
        """Return the requests of the first `prompts` prompts, with `tokens` tokens of each completion.

        Arrivals are scaled to the shorter completions.
        """
        longest = min(tokens, self.longest)
        return replace(
            self,
            prompts=self.prompts[:prompts],
            wave_P=self.wave_P[:prompts],
            arrival_P=tuple(arrival * longest // self.longest for arrival in self.arrival_P[:prompts]),
            longest=longest,
            completions=tuple(
                replace(completion, token_ids=completion.token_ids[:tokens], logprobs=completion.logprobs[:tokens])
                for completion in self.completions
                if completion.prompt < prompts
            ),
        )


@dataclass
class _Prompt:
    ids: tuple[int, ...]
    # Of its first request.
    wave: int
    arrival: int
    # Completions by wave.
    counts: Counter[int] = field(default_factory=Counter)
    # Completions of the first weights.
    first: list[WholeSequence] = field(default_factory=list)


def recorded_requests(path: Path) -> RecordedRequests:
    """Read the requests with the sampling parameters of most tokens.

    Raises NotFinished if `path` is no recording, a redacted one, or one without a whole completion.
    """
    log = recorded_log(path)
    if any(process.redacted for process in log.recording.processes):
        raise NotFinished(
            f"{path} is redacted: hashes stand for its token ids", "replay the recording that it was made from"
        )
    engine = next((engine for engine in log.recording.engines if engine.started), None)
    if engine is None:
        raise NotFinished(f"{path} holds no engine that started", "nothing of it can be asked again")
    prompts: dict[str, _Prompt] = {}
    sequences = longest = completions = adapted = 0
    for front, of_front in groupby(log.judged, key=attrgetter("front")):
        begins: dict[int, int] = {}
        new: dict[str, _Prompt] = {}
        for sequence in of_front:
            stamp = float(sequence.stamps_T[0])
            begun = front.served.version_at(stamp if math.isfinite(stamp) else sequence.finished)
            prompt = prompts.get(sequence.prompt)
            if prompt is None:
                ids = tuple(map(int, sequence.prompt_ids))
                prompt = prompts[sequence.prompt] = new[sequence.prompt] = _Prompt(ids, begun, sequence.step)
            if prompt.wave == begun and sequence.prompt in new:
                prompt.arrival = min(prompt.arrival, sequence.step)
            begins[begun] = min(begins.get(begun, sequence.step), sequence.step)
            prompt.counts[begun] += 1
            sequences += 1
            adapted += sequence.kept.lora is not None
            longest = max(longest, sequence.tokens)
            if completions < MOST_COMPLETIONS and bool((sequence.version_T == front.served.first_sampled).all()):
                completions += 1
                prompt.first.append(sequence)
        for prompt in new.values():
            prompt.arrival -= begins[prompt.wave]
    if not prompts:
        raise NotFinished(f"{path} holds no whole completion with logprobs", "nothing of it can be asked again")
    ordered = sorted(prompts.values(), key=lambda prompt: (prompt.wave, prompt.arrival))
    return RecordedRequests(
        prompts=tuple(prompt.ids for prompt in ordered),
        wave_P=tuple(prompt.wave for prompt in ordered),
        arrival_P=tuple(prompt.arrival for prompt in ordered),
        samples=statistics.mode(max(prompt.counts.values()) for prompt in ordered),
        longest=longest,
        completions=tuple(
            Completion(
                place,
                sample,
                tuple(map(int, sequence.ids_T)),
                tuple(map(float, sequence.logprobs_T)),
                sequence.kept.cached,
            )
            for place, prompt in enumerate(ordered)
            for sample, sequence in enumerate(prompt.first)
        ),
        of_prompts=len(prompts),
        of_sequences=sequences,
        adapted=adapted,
        effective=engine.engine.effective or {},
        generation=generation(engine),
        trainer_dtype=_trainer_dtype(log),
    )


def _trainer_dtype(log: RecordedLog) -> str | None:
    """Return the dtype of the model in the first recorded trainer call with gradients."""
    for process in log.recording.processes:
        for call in process.trainer:
            if call.gradients and call.model.get("dtype"):
                return str(call.model["dtype"]).removeprefix("torch.")
    return None


def _spread(length: int, places: int) -> Iterator[int]:
    """Return at most so many places in a completion, from its first token on and evenly spread."""
    count = min(length, places)
    return (number * length // count for number in range(count))


def described(requests: RecordedRequests, samples: int) -> str:
    """Describe how much of the recording is replayed with so many completions of each prompt."""
    waves, later = len(set(requests.wave_P)), sum(arrival > 0 for arrival in requests.arrival_P)
    meanwhile = f", {later} prompts while others run, by steps as recorded" if later else ""
    completions = len(requests.prompts) * samples
    return (
        f"{len(requests.prompts)} of {requests.of_prompts} recorded prompts, {completions} completions "
        f"({samples} each; {requests.of_sequences} recorded), in {waves} wave{'s' * (waves > 1)}{meanwhile}; recorded "
        f"completions of the first weights: {len(requests.completions)}"
    )
