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
from itertools import accumulate

from rlaudit.recording.column import Column
from rlaudit.recording.kept_lines import TEXT, KeptSequence
from rlaudit.recording.recorded_process import Process
from rlaudit.recording.weight_updates import CLEARING, PAUSING, RESUMING, ServedEngine, emptied

# Blocks have 16 tokens or more (vLLM's default; 128 on a CPU): smaller ones are no blocks of a cache.
LEAST_BLOCK = 8
# Of prompts: some 200 MB.
MOST_BLOCKS = 1 << 20
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
class _Taken:
    """A kept sequence whose first token and whose cached tokens are known."""

    sequence: KeptSequence
    # When its first token came.
    first: float
    cached: int
    # The ids of its prompt, if they name its blocks; None for one with images or a salt.
    prompt_ids: Column | None


def reused_blocks(served: ServedEngine) -> Mapping[KeptSequence, Reused]:
    """Return what each kept sequence of an engine took from the cache.

    Nothing for an engine whose weights were never updated. Sequences whose release does not say what was cached are
    left out.
    """
    if not served.updates:
        return {}
    sequences = [taken for front in served.fronts for taken in _taken(front)]
    block = math.gcd(*(taken.cached for taken in sequences if taken.prompt_ids is not None))
    if block < LEAST_BLOCK or _has_several_cores(served):
        return {taken.sequence: Reused(taken.cached, None if taken.cached else 0) for taken in sequences}
    whole_until = min(map(_whole_until, served.fronts))
    return dict(_followed(served, sequences, _Blocks(block), whole_until))


def _followed(
    served: ServedEngine, sequences: Sequence[_Taken], blocks: "_Blocks", whole_until: float
) -> Iterator[tuple[KeptSequence, Reused]]:
    """Yield what each sequence took, following the cache from one to the next."""
    resets = _resets(served)
    moments = [reset.at for reset in resets]
    computed: dict[int, int] = {}  # a block, and the version of the weights that computed it
    done = 0
    # Of one step, those that were served less computed what the others were served.
    for taken in sorted(sequences, key=lambda taken: (taken.first, taken.cached)):
        past = bisect_right(moments, taken.first)
        if past > done or len(computed) > MOST_BLOCKS:
            computed.clear()
            done = past
        version = served.version_at(taken.first)
        oldest = served.version_at(resets[done - 1].until) if done else 0
        names = blocks.of(taken)
        count = taken.cached // blocks.size
        if taken.first >= whole_until or taken.prompt_ids is None:
            yield taken.sequence, Reused(taken.cached, None if taken.cached and oldest < version else 0)
            continue
        versions = [computed.get(name) for name in names[:count]]
        old = [computed_by for computed_by in versions if computed_by is not None and computed_by < version]
        unknown = oldest < version and (None in versions or len(versions) < count)
        outlived = version - min(old, default=version)
        yield taken.sequence, Reused(taken.cached, None if unknown and not old else len(old) * blocks.size, outlived)
        computed.update(dict.fromkeys(names[count:], version))
        for name in names[:count]:
            computed.setdefault(name, version)


class _Blocks:
    """The blocks of prompts, by names that are equal for equal tokens after equal tokens."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._names: dict[tuple[str, str | None], tuple[int, ...]] = {}

    def of(self, taken: _Taken) -> tuple[int, ...]:
        """Return the names of the whole blocks of a prompt, in order."""
        key = (taken.sequence.prompt, taken.sequence.lora)
        if taken.prompt_ids is None:
            return ()
        if key not in self._names:
            if len(self._names) > MOST_BLOCKS // 16:
                self._names.clear()
            self._names[key] = tuple(self._names_of(taken.prompt_ids.read().tobytes(), taken.sequence.lora))
        return self._names[key]

    def _names_of(self, ids: bytes, lora: str | None) -> Iterator[int]:
        width = self.size * array("i").itemsize
        running = hashlib.blake2b((lora or "").encode(), digest_size=8)
        for end in range(width, len(ids) + 1, width):
            running.update(ids[end - width : end])
            yield int.from_bytes(running.digest(), "little")


def _taken(front: Process) -> Iterator[_Taken]:
    """Yield the sequences of a front end whose release says what was cached."""
    for sequence in front.sequences:
        asked, first = sequence.asked, front.steps.stamp_of(sequence.first_step)
        if sequence.cached is not None and math.isfinite(first):
            is_known = asked is not None and asked.parts == TEXT and asked.salted is False
            yield _Taken(sequence, first, sequence.cached, sequence.prompt_ids if is_known else None)


def _whole_until(front: Process) -> float:
    """Return when the first step ended that brought a token which was not kept; infinity for none."""
    # Tokens of kept sequences, as differences from one step to the next.
    changes = array("q", bytes(8 * (len(front.steps.tokens) + 1)))
    for first, count, each in (row for sequence in front.sequences for row in sequence.steps):
        if first + count < len(changes) and each < _MOST_OF_A_STEP:
            changes[first] += each
            changes[first + count] -= each
    for tokens, kept, stamp in zip(front.steps.tokens, accumulate(changes), front.steps.stamps, strict=False):
        if tokens != kept and math.isfinite(stamp):
            return stamp
    return math.inf


@dataclass(frozen=True)
class _Reset:
    """A moment at which the cache was emptied."""

    at: float
    # Nothing was computed before that, as the engine was paused.
    until: float


def _resets(served: ServedEngine) -> list[_Reset]:
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


def _has_several_cores(served: ServedEngine) -> bool:
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
            f"{len(stale)} of {len(reused)} sequences went on from {stale_tokens} cached prompt tokens that older "
            f"weights had computed. These cached tokens had outlived up to {most} updates"
        )
    elif cached and not unknown:
        yield f"none of {cached} cached prompt tokens was computed by older weights than the tokens that follow"
    if unknown:
        unknown_tokens = sum(sequence.cached for sequence in unknown)
        yield (
            f"of the {unknown_tokens} cached prompt tokens of {len(unknown)} sequences it is "
            "unknown which weights computed them"
        )
