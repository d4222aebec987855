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

from rlaudit.recorder.arrays import NotNumbers, whole_numbers
from rlaudit.recorder.recorded_process import token_records
from rlaudit.recorder.weight_updates import CLEARING, PAUSING, RESUMING, ServedWeights, emptied

# Blocks have 16 tokens or more (vLLM's default; 128 on a CPU): smaller ones are no blocks of a cache.
LEAST_BLOCK = 8
# Of prompts: some 200 MB.
MOST_BLOCKS = 1 << 20
_TEXT = "text"
# Tokens: a damaged line may hold any number.
_MOST_OF_A_STEP = 1 << 31


@dataclass(frozen=True)
class Reused:
    """What one sequence took from the prefix cache.

    cached: tokens. stale: those that older weights had computed than sampled its first token; None if unknown.
    outlived: how many updates the oldest of these had outlived.
    """

    cached: int
    stale: int | None
    outlived: int = 0


@dataclass(frozen=True)
class _Asked:
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
    asked: list[_Asked] = []
    whole_until = math.inf
    for served in fronts if fronts and fronts[0].updates else ():
        kept = _KeptTokens(len(served.steps.tokens))
        asked += _asked(served, prompts, kept)
        whole_until = min(whole_until, kept.whole_until(served))
    block = math.gcd(*(one.cached for one in asked if one.is_known))
    if not block:
        return {one.key: Reused(one.cached, 0 if not one.cached else None) for one in asked}
    if block < LEAST_BLOCK or _has_several_cores(fronts[0]):
        return {one.key: Reused(one.cached, None if one.cached else 0) for one in asked}
    return dict(_followed(fronts[0], asked, _Blocks(prompts, block), whole_until))


def _followed(
    served: ServedWeights, asked: Sequence[_Asked], blocks: "_Blocks", whole_until: float
) -> Iterator[tuple[tuple[Path, int], Reused]]:
    """Yield what each sequence took, following the cache from one to the next."""
    resets = _resets(served)
    emptied = [one.at for one in resets]
    computed: dict[int, int] = {}  # a block, and the version of the weights that computed it
    done = 0
    # Of one step, those that were served less computed what the others were served.
    for one in sorted(asked, key=lambda each: (each.first, each.cached)):
        upto = bisect_right(emptied, one.first)
        if upto > done or len(computed) > MOST_BLOCKS:
            computed.clear()
            done = upto
        now = served.version_at(one.first)
        oldest = served.version_at(resets[done - 1].until) if done else 0
        names = blocks.of(one.prompt, one.lora) if one.is_known else ()
        count = one.cached // blocks.size
        if one.first >= whole_until or not one.is_known:
            yield one.key, Reused(one.cached, None if one.cached and oldest < now else 0)
            continue
        versions = [computed.get(name) for name in names[:count]]
        old = [version for version in versions if version is not None and version < now]
        unknown = oldest < now and (None in versions or len(versions) < count)
        outlived = now - min(old, default=now)
        yield one.key, Reused(one.cached, None if unknown and not old else len(old) * blocks.size, outlived)
        computed.update(dict.fromkeys(names[count:], now))
        for name in names[:count]:
            computed.setdefault(name, now)


class _Blocks:
    """The blocks of prompts, by names that are equal for equal tokens after equal tokens."""

    def __init__(self, prompts: Mapping[str, bytes], size: int) -> None:
        self.prompts, self.size = prompts, size
        self._known: dict[tuple[str, str | None], tuple[int, ...]] = {}

    def of(self, prompt: str, lora: str | None) -> tuple[int, ...]:
        """Return the names of a prompt's whole blocks, in order."""
        key = (prompt, lora)
        if key not in self._known:
            if len(self._known) > MOST_BLOCKS // 16:
                self._known.clear()
            self._known[key] = tuple(self._named(self.prompts.get(prompt, b""), lora))
        return self._known[key]

    def _named(self, ids: bytes, lora: str | None) -> Iterator[int]:
        width = self.size * array("i").itemsize
        running = hashlib.blake2b((lora or "").encode(), digest_size=8)
        for end in range(width, len(ids) + 1, width):
            running.update(ids[end - width : end])
            yield int.from_bytes(running.digest(), "little")


def _asked(served: ServedWeights, prompts: dict[str, bytes], kept: "_KeptTokens") -> Iterator[_Asked]:
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
            yield _Asked((served.front.file, line), stamp, record["cached"], record["prompt"], lora, is_known)


class _KeptTokens:
    """How many tokens of kept sequences each step of a front end brought, as differences from one step to the next."""

    def __init__(self, steps: int) -> None:
        self.more = array("q", bytes(8 * (steps + 1)))

    def add(self, steps: Sequence[Sequence[int]]) -> None:
        """Add the tokens of a sequence: [first step, steps, tokens of each]."""
        for first, count, each in steps:
            if first + count < len(self.more) and each < _MOST_OF_A_STEP:
                self.more[first] += each
                self.more[first + count] -= each

    def whole_until(self, served: ServedWeights) -> float:
        """Return when the first step ended that brought a token which was not kept; infinity for none."""
        kept = 0
        for tokens, more, stamp in zip(served.steps.tokens, self.more, served.steps.stamps, strict=False):
            kept += more
            if tokens != kept and math.isfinite(stamp):
                return stamp
        return math.inf


@dataclass(frozen=True)
class _Reset:
    """A moment at which the cache was emptied. until: nothing was computed before that, as the engine was paused."""

    at: float
    until: float


def _resets(served: ServedWeights) -> list[_Reset]:
    """Return when the cache was emptied, in order."""
    found: list[_Reset] = []
    is_paused, waiting = False, 0
    for call in served.engine.calls:
        if call.name in PAUSING:
            is_paused = True
        elif call.name in RESUMING:
            is_paused = False
            found[waiting:] = [_Reset(one.at, call.begin) for one in found[waiting:]]
            waiting = len(found)
        elif call.name == CLEARING and emptied(call):
            found.append(_Reset(call.begin, math.inf if is_paused else call.begin))
            waiting = waiting if is_paused else len(found)
    return found


def _has_several_cores(served: ServedWeights) -> bool:
    for engine in served.engine.builder.engines:
        parallel = (engine.effective or {}).get("parallel_config")
        if isinstance(parallel, Mapping) and parallel.get("data_parallel_size", 1) != 1:
            return True
    return False


def stale_sentences(found: Collection[Reused]) -> Iterator[str]:
    """Yield what of the prefix cache outlived an update and was served, in sentences; nothing if nothing was cached."""
    cached = sum(one.cached for one in found)
    stale = [one for one in found if one.stale]
    unknown = [one for one in found if one.stale is None]
    if stale:
        most = max(one.outlived for one in stale)
        yield (
            f"{len(stale)} of {len(found)} sequences went on from {sum(one.stale or 0 for one in stale)} cached prompt "
            f"tokens that older weights had computed, which had outlived up to {most} updates"
        )
    elif cached and not unknown:
        yield f"of {cached} cached prompt tokens, older weights than those that went on from them had computed none"
    if unknown:
        yield (
            f"of the {sum(one.cached for one in unknown)} cached prompt tokens of {len(unknown)} sequences it is "
            "unknown which weights computed them"
        )
