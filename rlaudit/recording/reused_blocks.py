"""Which prompt tokens came from the prefix cache, and which weights had computed them.

A block is known by its tokens and all before them. It was computed when a prompt with it was first met and was not
served from the cache, and it stays in the cache until a reset. What was computed since the last reset is no older than
the weights at the reset: that alone clears an engine whose cache is emptied with each update.
A figure is a lower bound: a prompt that was computed while an update went on counts as computed under the newer
weights, and a block of these weights is not old though it was computed from older blocks.
Not covered: blocks of completions and of prompts with images or a cache salt, several engine cores behind one front end
(which one served is not recorded), and what came after the first request that was not kept, as it may have computed a
block anew: of these it is unknown how old they are. Standard library only: `inspect` asks, too.
"""

import hashlib
import math
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.recording.encoded_numbers import NotNumbers, whole_numbers
from rlaudit.recording.recorded_process import token_records
from rlaudit.recording.weight_updates import CLEARING, PAUSING, RESUMING, ServedWeights, emptied

# Blocks have 16 tokens or more (vLLM's default; 128 on a CPU): smaller ones are no blocks of a cache.
LEAST_BLOCK = 8
# Of prompts: some 200 MB.
MOST_BLOCKS = 1 << 20
_TEXT = "text"
# Tokens: a damaged line may hold any number.
_MOST_OF_A_STEP = 1 << 31


@dataclass(frozen=True)
class Reused:
    """What one sequence took from the prefix cache."""

    # Tokens that it took.
    cached: int
    # Those that older weights had computed than sampled its first token; None if unknown.
    stale: int | None
    # How many updates the oldest of these had outlived.
    outlived: int = 0


@dataclass(frozen=True)
class _KeptSequence:
    """A kept sequence whose first token is known. blocks: of its prompt; None if they cannot be known."""

    key: tuple[Path, int]
    first: float
    cached: int
    prompt: str
    lora: str | None
    is_known: bool


def reused_blocks(fronts: Sequence[ServedWeights]) -> Mapping[tuple[Path, int], Reused]:
    """Return what each kept sequence of one engine took from the cache, by its file and line.

    fronts: all front ends of the engine. Nothing for an engine whose weights were never updated. Sequences whose
    release does not say what was cached are left out.
    """
    prompts: dict[str, bytes] = {}
    sequences: list[_KeptSequence] = []
    whole_until = math.inf
    for served in fronts if fronts and fronts[0].updates else ():
        kept = _KeptTokens(len(served.steps.tokens))
        sequences += _kept_sequences(served, prompts, kept)
        whole_until = min(whole_until, kept.whole_until(served))
    block = math.gcd(*(sequence.cached for sequence in sequences if sequence.is_known))
    if block < LEAST_BLOCK or _has_several_cores(fronts[0]):
        return {sequence.key: Reused(sequence.cached, None if sequence.cached else 0) for sequence in sequences}
    return dict(_followed(fronts[0], sequences, _Blocks(prompts, block), whole_until))


def _followed(
    served: ServedWeights, sequences: Sequence[_KeptSequence], blocks: "_Blocks", whole_until: float
) -> Iterator[tuple[tuple[Path, int], Reused]]:
    """Yield what each sequence took, following the cache from one to the next."""
    resets = _resets(served)
    moments = [reset.at for reset in resets]
    computed: dict[int, int] = {}  # a block, and the version of the weights that computed it
    done = 0
    # Of one step, those that were served less computed what the others were served.
    for sequence in sorted(sequences, key=lambda sequence: (sequence.first, sequence.cached)):
        past = bisect_right(moments, sequence.first)
        if past > done or len(computed) > MOST_BLOCKS:
            computed.clear()
            done = past
        version = served.version_at(sequence.first)
        oldest = served.version_at(resets[done - 1].until) if done else 0
        names = blocks.of(sequence.prompt, sequence.lora) if sequence.is_known else ()
        count = sequence.cached // blocks.size
        if sequence.first >= whole_until or not sequence.is_known:
            yield sequence.key, Reused(sequence.cached, None if sequence.cached and oldest < version else 0)
            continue
        versions = [computed.get(name) for name in names[:count]]
        old = [computed_by for computed_by in versions if computed_by is not None and computed_by < version]
        unknown = oldest < version and (None in versions or len(versions) < count)
        outlived = version - min(old, default=version)
        yield sequence.key, Reused(sequence.cached, None if unknown and not old else len(old) * blocks.size, outlived)
        computed.update(dict.fromkeys(names[count:], version))
        for name in names[:count]:
            computed.setdefault(name, version)


class _Blocks:
    """The blocks of prompts, by names that are equal for equal tokens after equal tokens."""

    def __init__(self, prompts: Mapping[str, bytes], size: int) -> None:
        self.prompts, self.size = prompts, size
        self._names: dict[tuple[str, str | None], tuple[int, ...]] = {}

    def of(self, prompt: str, lora: str | None) -> tuple[int, ...]:
        """Return the names of a prompt's whole blocks, in order."""
        key = (prompt, lora)
        if key not in self._names:
            if len(self._names) > MOST_BLOCKS // 16:
                self._names.clear()
            self._names[key] = tuple(self._names_of(self.prompts.get(prompt, b""), lora))
        return self._names[key]

    def _names_of(self, ids: bytes, lora: str | None) -> Iterator[int]:
        width = self.size * array("i").itemsize
        running = hashlib.blake2b((lora or "").encode(), digest_size=8)
        for end in range(width, len(ids) + 1, width):
            running.update(ids[end - width : end])
            yield int.from_bytes(running.digest(), "little")


def _kept_sequences(served: ServedWeights, prompts: dict[str, bytes], kept: "_KeptTokens") -> Iterator[_KeptSequence]:
    """Yield the sequences of a front end, and note their prompts and tokens."""
    requests: dict[str, dict[str, Any]] = {}
    stamps = served.steps.stamps
    for line, record in token_records(served.front, ("prompt", "request", "sequence")):
        if record["kind"] == "prompt":
            try:
                prompts[record["prompt"]] = whole_numbers(record["ids"]).tobytes()
            except NotNumbers:  # named by the readers of tokens
                continue
        elif record["kind"] == "request":
            requests[record["request"]] = record
        else:
            request = requests.pop(record["request"], None)
            kept.add(record["steps"])
            first = record["steps"][0][0] if record["steps"] else len(stamps)
            stamp = stamps[first] if first < len(stamps) else math.nan
            if record["cached"] is None or not math.isfinite(stamp):
                continue
            is_known = request is not None and request["parts"] == _TEXT and request["salted"] is False
            lora = None if request is None else request["lora"]
            is_known = is_known and record["prompt"] in prompts
            yield _KeptSequence((served.front.file, line), stamp, record["cached"], record["prompt"], lora, is_known)


class _KeptTokens:
    """How many tokens of kept sequences each step of a front end brought, as differences from one step to the next."""

    def __init__(self, steps: int) -> None:
        self.changes = array("q", bytes(8 * (steps + 1)))

    def add(self, steps: Sequence[Sequence[int]]) -> None:
        """Add the tokens of a sequence: [first step, steps, tokens of each]."""
        for first, count, each in steps:
            if first + count < len(self.changes) and each < _MOST_OF_A_STEP:
                self.changes[first] += each
                self.changes[first + count] -= each

    def whole_until(self, served: ServedWeights) -> float:
        """Return when the first step ended that brought a token which was not kept; infinity for none."""
        kept = 0
        for tokens, change, stamp in zip(served.steps.tokens, self.changes, served.steps.stamps, strict=False):
            kept += change
            if tokens != kept and math.isfinite(stamp):
                return stamp
        return math.inf


@dataclass(frozen=True)
class _Reset:
    """A moment at which the cache was emptied."""

    at: float
    # Nothing was computed before that, as the engine was paused.
    until: float


def _resets(served: ServedWeights) -> list[_Reset]:
    """Return when the cache was emptied, in order."""
    resets: list[_Reset] = []
    is_paused, waiting = False, 0
    for call in served.engine.calls:
        if call.name in PAUSING:
            is_paused = True
        elif call.name in RESUMING:
            is_paused = False
            resets[waiting:] = [_Reset(reset.at, call.begin) for reset in resets[waiting:]]
            waiting = len(resets)
        elif call.name == CLEARING and emptied(call):
            resets.append(_Reset(call.begin, math.inf if is_paused else call.begin))
            waiting = waiting if is_paused else len(resets)
    return resets


def _has_several_cores(served: ServedWeights) -> bool:
    configs = [(engine.effective or {}).get("parallel_config") for engine in served.engine.builder.engines]
    return any(isinstance(config, Mapping) and config.get("data_parallel_size", 1) != 1 for config in configs)


def stale_sentences(reused: Collection[Reused]) -> Iterator[str]:
    """Yield sentences on cached tokens that outlived an update and were served; none if nothing was cached."""
    cached = sum(sequence.cached for sequence in reused)
    stale = [sequence for sequence in reused if sequence.stale]
    unknown = [sequence for sequence in reused if sequence.stale is None]
    if stale:
        stale_tokens = sum(sequence.stale or 0 for sequence in stale)
        most = max(sequence.outlived for sequence in stale)
        yield (
            f"{len(stale)} of {len(reused)} sequences went on from {stale_tokens} cached prompt "
            f"tokens that older weights had computed, which had outlived up to {most} updates"
        )
    elif cached and not unknown:
        yield f"of {cached} cached prompt tokens, older weights than those that went on from them had computed none"
    if unknown:
        unknown_tokens = sum(sequence.cached for sequence in unknown)
        yield (
            f"of the {unknown_tokens} cached prompt tokens of {len(unknown)} sequences it is "
            "unknown which weights computed them"
        )
