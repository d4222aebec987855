"""Faults that need weights which change under a running engine: which update is made, and who trains on what.

Each engine is updated once, in the pause mode `wait`: requests in flight end on the old weights, others start on the
new ones with a cache that the first have filled. Whoever clears the cache and scores every token with the weights that
sampled it has nothing to find; two of the ways to do it otherwise are planted.

Not planted: a stale prefix cache of engine V0, whose CPU build dies with prefix caching (it asks for
intel_extension_for_pytorch).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evidence.selftest.engines.engine_plants import STANDARD, engine_of
from rlaudit.causes.stale_prefix_kv import NAME as STALE_PREFIX_KV
from rlaudit.causes.stale_weights import NAME as STALE_WEIGHTS
from rlaudit.vllm.resolution.engine import EngineKind

MODE = "wait"
PATH_OF = {"V0": "load_weights", "V1": "reload_weights"}
CACHING_OF = {"V0": "off", "V1": "on"}
CLEARS_OF = {"V0": (False,), "V1": (True, False)}


@dataclass(frozen=True)
class UpdatePlant:
    """causes: the truth. clear_cache: of the pause; V0 has nothing to clear. trained_late: rollouts from before the
    update are scored by the trainer with the weights that it has after it."""

    name: str
    version: str
    causes: tuple[str, ...] = ()
    clear_cache: bool = True
    trained_late: bool = False


def update_plants(releases: Sequence[str] = STANDARD) -> tuple[UpdatePlant, ...]:
    """All that these releases can be planted with."""
    plants = [
        plant
        for release in releases
        for plant in (
            UpdatePlant(f"clean update of {release}", release, clear_cache=CLEARS_OF[engine_of(release)][0]),
            UpdatePlant(
                f"stale weights on {release}",
                release,
                (STALE_WEIGHTS,),
                CLEARS_OF[engine_of(release)][0],
                trained_late=True,
            ),
        )
    ]
    cached = [release for release in releases if CACHING_OF[engine_of(release)] == "on"]
    stale = [
        UpdatePlant(f"stale prefix cache on {release}", release, (STALE_PREFIX_KV,), clear_cache=False)
        for release in cached
    ]
    return (*plants, *stale)


def recipe_document(releases: Sequence[str], seed: int) -> dict[str, Any]:
    """A weight-update recipe that makes the rollouts of all plants on these releases."""
    return {
        "schema": "rlaudit-recipe/1",
        "description": "Weight updates with known answers",
        "seed": seed,
        "weight_updates": {"engines": [_engine(release, engine_of(release)) for release in releases]},
    }


def _engine(release: str, kind: EngineKind) -> dict[str, Any]:
    return {
        "version": release,
        "engine": kind,
        "path": PATH_OF[kind],
        "modes": [MODE],
        "clear_cache": list(CLEARS_OF[kind]),
        "prefix_caching": [CACHING_OF[kind]],
    }
