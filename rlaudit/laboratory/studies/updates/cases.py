"""The cases of an audit of weight updates: what is sampled, and when the weights change.

A case of the matrix is the stale-KV protocol with a flight in the middle of it. All runs have the same prompts:
    cold          version 0, empty cache: one token each, which fills the cache
    flight        version 0, served from that cache; the update meets it after a third of its tokens
    after         version 1, submitted while the engine is paused: warm, and stale if anything is kept
    cold after    version 1, cache emptied: what `after` should have sampled
    warm after    version 1, cache of `cold after`: the noise control
Many cases share one engine start (plan.py), and each begins by restoring version 0.
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

Step = dict[str, Any]


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


@dataclass(frozen=True)
class UpdateCase:
    """One course of requests and updates."""

    name: str
    kind: CaseKind
    steps: tuple[Step, ...]
    # NONE if the engine is not paused.
    mode: PauseMode = PauseMode.KEEP
    clear_cache: bool = True
    # Whether each request's cache_salt is the version of the weights that are to serve it.
    salted: bool = False

    @property
    def caching(self) -> str:
        """What keeps old keys and values from new requests, in words."""
        return f"clear_cache={self.clear_cache}{', salted' * self.salted}"

    def as_job(self) -> dict[str, Any]:
        """Return the case as the worker script reads it."""
        return {"name": self.name, "steps": list(self.steps)}


@dataclass(frozen=True)
class Requests:
    """The requests of a run. All runs have the same prompts."""

    prompts: int
    samples: int
    seed: int

    def of(self, samples: int | None = None, *, stream: int = 0) -> list[dict[str, int]]:
        """Return requests with seeds by prompt, sample and stream only: runs of one stream can be paired."""
        return [
            {
                "prompt": prompt,
                "sample": sample,
                "seed": (self.seed * 1_000_003 + stream * 10_007 + prompt * 101 + sample) % 2**31,
            }
            for prompt in range(self.prompts)
            for sample in range(samples or self.samples)
        ]


def _submit(
    run: str, requests: list[dict[str, int]], max_tokens: int, until: int | None = None, salt: str | None = None
) -> Step:
    step = {"do": "submit", "run": run, "requests": requests, "max_tokens": max_tokens, "until": until}
    return step if salt is None else {**step, "salt": salt}


def _update(mode: PauseMode, clear_cache: bool, while_paused: list[Step]) -> Step:
    return {
        "do": "update",
        "version": "1",
        "mode": mode,
        "clear_cache": clear_cache,
        "while_paused": while_paused,
    }


def matrix_case(
    mode: PauseMode, clear: bool, salted: bool, settings: WeightUpdates, requests: Requests, *, read_back: bool
) -> UpdateCase:
    """Return one case of the matrix, as the module describes it."""
    after, flight = settings.after_tokens, settings.flight_tokens
    old, new = ("0", "1") if salted else (None, None)
    paused = [_submit(AFTER, requests.of(stream=2), after, salt=new)]
    steps = [
        {"do": "restore"},
        _submit(COLD, requests.of(1), 1, salt=old),
        _submit(FLIGHT, requests.of(stream=1), flight, until=flight // 3, salt=old),
        _update(mode, clear, paused),
        {"do": "settle"},
        *([{"do": "read_back"}] if read_back else []),
        {"do": "reset_prefix_cache"},
        _submit(COLD_AFTER, requests.of(stream=2), after, salt=new),
        _submit(WARM_AFTER, requests.of(stream=2), after, salt=new),
    ]
    name = f"mode={mode}, clear_cache={clear}" if mode is not PauseMode.NONE else "no pause"
    return UpdateCase(f"{name}{', salted' * salted}", CaseKind.MATRIX, tuple(steps), mode, clear, salted)


def adapter_case(way: AdapterWay, settings: WeightUpdates, requests: Requests) -> UpdateCase:
    """Return an adapter that follows one without effect; nothing is paused or cleared.

    Requests in flight keep the adapter that they name, so there are none.
    """
    after = settings.after_tokens
    paused = [_submit(AFTER, requests.of(stream=2), after)]
    steps: tuple[Step, ...] = (
        {"do": "restore", "way": way},
        _submit(COLD, requests.of(1), 1),
        _submit(BEFORE, requests.of(stream=1), after),
        {**_update(PauseMode.NONE, False, paused), "way": way},
        {"do": "settle"},
        {"do": "reset_prefix_cache"},
        _submit(COLD_AFTER, requests.of(stream=2), after),
        _submit(WARM_AFTER, requests.of(stream=2), after),
    )
    return UpdateCase(ADAPTERS[way], CaseKind.ADAPTER, steps, PauseMode.NONE, False)
