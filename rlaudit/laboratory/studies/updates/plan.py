"""From a recipe to engine starts: each release, with every level of caching and scheduling and every path.

What happens in a start is told by its cases (cases.py).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.vllm.expected_engine import ExpectedEngine, expected_engine
from rlaudit.errors import UsageError
from rlaudit.laboratory.engine_cell import engine_variables, usual_engine_args
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.updates.cases import (
    Requests,
    UpdateCase,
    matrix_case,
    path_case,
    row_case,
)
from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe, WeightUpdates
from rlaudit.laboratory.study import EngineWanted
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.laboratory.weight_path import WeightPath, loading_path
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolution.engine import EngineKind


@dataclass(frozen=True)
class EngineStart:
    """One engine process: how it is configured, how weights are brought to it and loaded, and its cases.

    engine: V0 or V1, where the recipe asks for one. entry: the place in the recipe's engines that it comes from. own:
    what that entry sets, as words.
    """

    name: str
    version: str
    path: str
    engine_args: Mapping[str, Any]
    cases: tuple[UpdateCase, ...]
    levels: Mapping[str, str] = field(default_factory=dict)
    engine: EngineKind | None = None
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    entry: int = 0
    own: tuple[str, ...] = ()
    transport: str = "disk"

    def variables(self, device: str) -> dict[str, str]:
        """Environment variables of the engine process on cuda or cpu."""
        return engine_variables(device, self.version, self.engine, self.engine_args, self.environment_variables)

    def expected(self, machine: Machine, model: str | None = None) -> ExpectedEngine:
        """The engine, V0 or V1, that this start is about on this machine."""
        variables = self.variables(machine.platform)
        return expected_engine(self.version, self.engine, self.engine_args, variables, machine, model)


@dataclass(frozen=True)
class UpdatePlan:
    """The engine starts of a recipe, in the order in which they run."""

    recipe: UpdateRecipe
    starts: tuple[EngineStart, ...]
    title: str = "weight updates"
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def engines(self) -> tuple[EngineWanted, ...]:
        """The engine of every start."""
        return tuple(EngineWanted(start.name, start.version, start.engine_args) for start in self.starts)

    @property
    def scoring(self) -> tuple[ScoringRequest, ...]:
        """The one way in which every checkpoint is scored."""
        return (ScoringRequest(TrainerSettings(dtype=self.recipe.dtype), {"temperature": 1.0}),)

    def arms(self) -> list[dict[str, str]]:
        """The engine starts as plan.json names them."""
        return [
            {"block": "weight updates", "name": start.name, "role": "engine start", "version": start.version}
            for start in self.starts
        ]


def plan_updates(recipe: UpdateRecipe, accelerator: Accelerator, prompts: PromptSet) -> UpdatePlan:
    """The engine starts of a recipe on this machine. Raises UsageError where two have one name."""
    return UpdatePlan(recipe, plan_starts(recipe, len(prompts.prompts), accelerator.kind))


def plan_starts(recipe: UpdateRecipe, prompts: int, device: str) -> tuple[EngineStart, ...]:
    """Every engine start of the recipe, in the order in which they run. Raises UsageError where two have one name."""
    settings = recipe.weight_updates
    requests = Requests(prompts, settings.samples, recipe.seed)
    starts = [
        replace(start, environment_variables=recipe.environment_variables, entry=entry)
        for entry, engine in enumerate(settings.engines)
        for start in _named(engine, _starts_of(_Entry.of(engine, recipe, requests, device)))
        if start.cases
    ]
    twice = [name for name, times in Counter(start.name for start in starts).items() if times > 1]
    if twice:
        raise UsageError(
            f"two engine starts of the recipe are called {twice[0]!r}",
            "put what is tried on one release into one entry",
        )
    return tuple(starts)


def _named(engine: EngineToUpdate, starts: Iterator[EngineStart]) -> Iterator[EngineStart]:
    """The starts of an entry, each with what the entry itself sets in its name."""
    said = {"engine": engine.engine} if engine.engine else {}
    brought = {"transport": engine.transport} if engine.transport != "disk" else {}
    own = tuple(f"{name}={value}" for name, value in {**said, **brought, **engine.engine_args}.items())
    for start in starts:
        name = ", ".join([start.name, *own])
        yield replace(start, name=name, engine=engine.engine, own=own, transport=engine.transport)


@dataclass(frozen=True)
class _Entry:
    """An entry of the recipe's engines on this machine. path: how weights are loaded where no other way is tried.

    shared: the arguments of all its engine starts.
    """

    engine: EngineToUpdate
    path: WeightPath
    settings: WeightUpdates
    requests: Requests
    shared: Mapping[str, Any]

    @classmethod
    def of(cls, engine: EngineToUpdate, recipe: UpdateRecipe, requests: Requests, device: str) -> "_Entry":
        usual = _usual_args(engine.version, recipe.dtype, device)
        path = loading_path(engine.path, engine.transport, engine.engine, device)
        shared = {**usual, **recipe.engine_args, **engine.engine_args}
        return cls(engine, path, recipe.weight_updates, requests, shared)

    def start(
        self, words: str, path: str, caching: bool, cases: tuple[UpdateCase, ...], levels: Mapping[str, str]
    ) -> EngineStart:
        arguments = {**self.shared, "enable_prefix_caching": caching}
        return EngineStart(f"vLLM {self.engine.version}, {words}", self.engine.version, path, arguments, cases, levels)


def _usual_args(version: str, dtype: str, device: str) -> dict[str, Any]:
    # Prompts and completions here are short; a larger context would only fill a processor's KV cache.
    short = {"max_model_len": 256, "max_num_batched_tokens": 8192} if device == "cpu" else {}
    return {**usual_engine_args(version, dtype, device), **short}


def _starts_of(entry: _Entry) -> Iterator[EngineStart]:
    """Yield the matrix, then every path that it does not show."""
    engine = entry.engine
    for scheduling in engine.async_scheduling or ("",):
        for caching in engine.prefix_caching:
            yield _matrix_start(entry, caching, scheduling)
    # Where there is a matrix, it shows what its own path updates from disk.
    shown = engine.modes and engine.transport == "disk"
    others = [path for path in engine.other_paths if path != entry.path or not shown]
    if engine.transport != "disk" and entry.path not in others:
        others.insert(0, entry.path)
    for path in others:
        yield _path_start(entry, path)


def _matrix_start(entry: _Entry, caching: str, scheduling: str) -> EngineStart:
    engine = entry.engine
    levels = {"prefix-caching": caching, **({"async-scheduling": scheduling} if scheduling else {})}
    sequences = [
        (mode, clear) for mode in engine.modes for clear in (engine.clear_cache if mode != "none" else [False])
    ]
    cases = [
        matrix_case(mode, clear, entry.settings, entry.requests, read_back=place == 0)
        for place, (mode, clear) in enumerate(sequences)
    ]
    if engine.in_a_row > 1 and caching == "on" and "keep" in engine.modes:
        cases.append(row_case(entry.settings, entry.requests, engine.in_a_row))
    words = ", ".join(f"{factor}={level}" for factor, level in levels.items())
    start = entry.start(words, entry.path, caching == "on", tuple(cases), levels)
    if not scheduling:
        return start
    return replace(start, engine_args={**start.engine_args, "async_scheduling": scheduling == "on"})


def _path_start(entry: _Entry, path: str) -> EngineStart:
    engine, settings, requests = entry.engine, entry.settings, entry.requests
    cases = [path_case(settings, requests)]
    if path == ("reload_from_iterator" if engine.transport == "disk" else entry.path):
        plants = [{"planted": tuple(engine.planted)}, {"late": tuple(engine.planted_late)}]
        # What another process sends may meet requests in flight in a way of its own.
        ways = [False] if engine.transport == "disk" else [False, True]
        cases += [
            path_case(settings, requests, **plant, in_flight=in_flight)
            for plant in plants
            if any(plant.values())
            for in_flight in ways
        ]
    return entry.start(f"path {path}", path, "on" in engine.prefix_caching, tuple(cases), {"path": path})
