"""From a recipe to engine starts: each release, with every level of caching and scheduling.

The cases of a start are in cases.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import UsageError
from rlaudit.laboratory.engine_cell import usual_engine_args
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.updates.cases import Run, UpdateCase, runs_of
from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe
from rlaudit.laboratory.study import EngineWanted
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.laboratory.weight_path import ADAPTER, MERGED, loading_path
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.vllm.resolution.engine import EngineKind


@dataclass(frozen=True)
class EngineStart:
    """One engine process: how it is configured, how weights are brought to it and loaded, and its cases."""

    name: str
    version: str
    path: str
    engine_args: Mapping[str, Any]
    cases: tuple[UpdateCase, ...]
    levels: Mapping[str, str] = field(default_factory=dict)
    # V0 or V1 if the recipe names it.
    engine: EngineKind | None = None
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    transport: str = "disk"

    @property
    def wanted(self) -> EngineWanted:
        """The engine process."""
        return EngineWanted(
            self.name, self.version, self.engine_args, engine=self.engine, written=self.environment_variables
        )

    @property
    def checkpoints(self) -> list[str]:
        """The model, and what follows it: the next version, or the model with an adapter."""
        return ["0", MERGED if self.path == ADAPTER else "1"]

    @property
    def moves(self) -> int:
        """How often all weights are read or sent: at the start, twice in each case, and per version of a read back."""
        return 1 + 2 * len(self.cases) + 2 * sum(case.read_back for case in self.cases)


@dataclass(frozen=True)
class UpdatePlan:
    """The engine starts of a recipe, in the order in which they run."""

    recipe: UpdateRecipe
    starts: tuple[EngineStart, ...]
    # Of every case, by name.
    runs: Mapping[str, Run]
    title: str = "weight updates"
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def engines(self) -> tuple[EngineWanted, ...]:
        """The engine of every start."""
        return tuple(start.wanted for start in self.starts)

    @property
    def indispensable(self) -> tuple[str, ...]:
        """Empty: each engine is compared with the trainer."""
        return ()

    @property
    def scoring(self) -> tuple[ScoringRequest, ...]:
        """The one way in which every checkpoint is scored."""
        return (ScoringRequest(TrainerSettings(dtype=self.recipe.dtype), {"temperature": 1.0}),)

    def arms(self) -> list[dict[str, str]]:
        """Return the engine starts as plan.json names them."""
        return [
            {"block": "weight updates", "name": start.name, "role": "engine start", "version": start.version}
            for start in self.starts
        ]


def plan_updates(recipe: UpdateRecipe, accelerator: Accelerator, prompts: PromptSet) -> UpdatePlan:
    """Return the engine starts of a recipe on this machine. Raises UsageError if two have one name."""
    runs = runs_of(recipe.weight_updates, len(prompts.prompts), recipe.seed)
    return UpdatePlan(recipe, plan_starts(recipe, accelerator.kind), runs)


def plan_starts(recipe: UpdateRecipe, device: str) -> tuple[EngineStart, ...]:
    """Return the engine starts of the recipe in the order in which they run. Raises UsageError if two have one name."""
    engines = recipe.weight_updates.engines
    starts = [start for engine in engines for start in _starts_of(engine, recipe, device) if start.cases]
    twice = [name for name, times in Counter(start.name for start in starts).items() if times > 1]
    if twice:
        raise UsageError(
            f"two engine starts of the recipe are called {twice[0]!r}",
            "put what is tried on one release into one entry",
        )
    return tuple(starts)


def _starts_of(engine: EngineToUpdate, recipe: UpdateRecipe, device: str) -> Iterator[EngineStart]:
    """Yield the matrix of an entry, then its adapters."""
    shared = _usual_args(engine.version, recipe.dtype, device)
    kind = {"engine": engine.engine} if engine.engine else {}
    brought = {"transport": engine.transport} if engine.transport != "disk" else {}
    settings_in_words = tuple(f"{name}={value}" for name, value in {**kind, **brought, **engine.engine_args}.items())

    def start(
        words: str, path: str, cases: Sequence[UpdateCase], levels: Mapping[str, str], **arguments: Any
    ) -> EngineStart:
        return EngineStart(
            name=", ".join([f"vLLM {engine.version}", words, *settings_in_words]),
            version=engine.version,
            path=path,
            engine_args={**shared, **recipe.engine_args, **engine.engine_args, **arguments},
            cases=tuple(cases),
            levels=levels,
            engine=engine.engine,
            environment_variables=recipe.environment_variables,
            transport="disk" if path == ADAPTER else engine.transport,
        )

    usual = loading_path(engine.path, engine.transport, engine.engine, device)
    for scheduling in engine.async_scheduling or (None,):
        for caching in engine.prefix_caching:
            levels = {"prefix-caching": caching, **({"async-scheduling": scheduling} if scheduling else {})}
            words = ", ".join(f"{factor}={level}" for factor, level in levels.items())
            scheduled = {"async_scheduling": scheduling == "on"} if scheduling else {}
            yield start(
                words, usual, _matrix(engine, caching), levels, enable_prefix_caching=caching == "on", **scheduled
            )
    if engine.adapters:
        cases = [UpdateCase(PauseMode.NONE, clear_cache=False, way=way) for way in engine.adapters]
        # CUDA's kernels for adapters take no float32 (vllm/lora/ops/triton_ops/lora_shrink_op.py of 0.18.1:172).
        rounded = {"dtype": "bfloat16"} if device == "cuda" and recipe.dtype == "float32" else {}
        yield start("adapters", ADAPTER, cases, {}, enable_prefix_caching=True, enable_lora=True, **rounded)


def _usual_args(version: str, dtype: str, device: str) -> dict[str, Any]:
    # Prompts and completions here are short; a larger context would only fill a processor's KV cache.
    short = {"max_model_len": 256, "max_num_batched_tokens": 8192} if device == "cpu" else {}
    return {**usual_engine_args(version, dtype, device), **short}


def _matrix(engine: EngineToUpdate, caching: str) -> list[UpdateCase]:
    """Return every sequence of calls of an entry; the weights are read back in the first."""
    cases = [
        UpdateCase(mode, clear)
        for mode in engine.modes
        for clear in ([False] if mode is PauseMode.NONE else engine.clear_cache)
    ]
    if engine.salted and caching == "on":
        cases += [UpdateCase(mode, clear_cache=False, salted=True) for mode in engine.modes]
    return [replace(case, read_back=place == 0) for place, case in enumerate(cases)]
