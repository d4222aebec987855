"""The cases of an audit of weight updates: how the engine is paused, and what keeps old keys and values from requests.

A case is the stale-KV protocol with a flight in the middle of it, played by engines/inside/scripts/update_weights.py.
All runs have the same prompts:
    cold          version 0, empty cache: one token each, which fills the cache
    flight        version 0, served from that cache; the update meets it after a third of its tokens
    after         version 1, submitted while the engine is paused: warm, and stale if anything is kept
    cold after    version 1, cache emptied: what `after` should have sampled
    warm after    version 1, cache of `cold after`: the noise control
An adapter follows one without effect; nothing is paused or cleared. Requests in flight keep the adapter that they name,
so there are none: `before` is sampled in their place. Many cases share one engine start (plan.py), and each begins by
restoring version 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rlaudit.laboratory.studies.updates.recipe import WeightUpdates
from rlaudit.laboratory.weight_path import AdapterWay
from rlaudit.settings.trainer_facts import PauseMode

BEFORE, COLD, FLIGHT, AFTER = "before", "cold", "flight", "after"
COLD_AFTER, WARM_AFTER = "cold after", "warm after"

# The requests of a run, and the length of their completions.
Run = Mapping[str, Any]


class CaseKind(StrEnum):
    """What a case is for."""

    MATRIX = "matrix"
    ADAPTER = "adapter"


ADAPTERS: Mapping[AdapterWay, str] = {
    "new name": "new name and number",
    "new number": "new number, old name",
    "in place": "loaded in place",
    "same": "old name and number",
}


def adapters(way: AdapterWay) -> dict[str, dict[str, Any]]:
    """Return what requests call the adapter of each version. Cases of one engine must not share a number."""
    first = 1 + 1000 * list(ADAPTERS).index(way)
    number, name = way in ("new name", "new number"), way == "new name"
    return {
        str(version): {
            "name": f"{way} {version}" if name else way,
            "number": first + version if number else first,
            "in place": way == "in place",
        }
        for version in range(2)
    }


@dataclass(frozen=True)
class UpdateCase:
    """One way to update."""

    # NONE if the engine is not paused.
    mode: PauseMode = PauseMode.KEEP
    clear_cache: bool = True
    # Whether each request's cache_salt is the version of the weights that are to serve it.
    salted: bool = False
    # How an adapter is called, if the update is one.
    way: AdapterWay | None = None
    # Whether the weights that the worker holds are read back.
    read_back: bool = False

    @property
    def kind(self) -> CaseKind:
        """Whether it is a case of the matrix or an adapter's."""
        return CaseKind.ADAPTER if self.way else CaseKind.MATRIX

    @property
    def name(self) -> str:
        """The way to update in words."""
        if self.way:
            return ADAPTERS[self.way]
        paused = f"mode={self.mode}, clear_cache={self.clear_cache}"
        return f"{paused if self.mode is not PauseMode.NONE else 'no pause'}{', salted' * self.salted}"

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of its runs, in order."""
        return (COLD, BEFORE if self.way else FLIGHT, AFTER, COLD_AFTER, WARM_AFTER)

    def as_job(self) -> dict[str, Any]:
        """Return the case as the worker script reads it."""
        names = ("name", "mode", "clear_cache", "salted", "read_back")
        job = {name: getattr(self, name) for name in names}
        return {**job, "adapters": adapters(self.way) if self.way else None}


def runs_of(settings: WeightUpdates, prompts: int, seed: int) -> dict[str, Run]:
    """Return the runs of every case by name. Runs with the same requests can be paired."""
    after = _run(prompts, seed, settings.samples, settings.after_tokens, stream=2)
    return {
        COLD: _run(prompts, seed, 1, 1, stream=0),
        BEFORE: _run(prompts, seed, settings.samples, settings.after_tokens, stream=1),
        FLIGHT: _run(prompts, seed, settings.samples, settings.flight_tokens, stream=1),
        **dict.fromkeys((AFTER, COLD_AFTER, WARM_AFTER), after),
    }


def _run(prompts: int, seed: int, samples: int, max_tokens: int, stream: int) -> Run:
    """Return a run whose seeds differ by prompt, sample and stream."""
    requests = [
        {
            "prompt": prompt,
            "sample": sample,
            "seed": (seed * 1_000_003 + stream * 10_007 + prompt * 101 + sample) % 2**31,
        }
        for prompt in range(prompts)
        for sample in range(samples)
    ]
    return {"requests": requests, "max_tokens": max_tokens}
