"""From a recipe to engine starts, and in each of them to cases: who samples what, and when the weights change.

A case of the matrix is the stale-KV protocol with a flight in the middle of it. All runs ask the same prompts:
    cold          version 0, empty cache: one token each, which fills the cache
    flight        version 0, served from that cache; the update meets it after a third of its tokens
    after         version 1, submitted while the engine is paused: warm, and stale if anything is kept;
                  with it `unshared`, the same prompts behind a token of their own, which no cache can hold
    cold after    version 1, cache emptied: what `after` should have said
    warm after    version 1, cache of `cold after`: the noise control
Many cases share one engine start, and each begins by restoring version 0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.ieee_float32 import ieee_float32
from rlaudit.engines.vllm.engine import ENGINE
from rlaudit.engines.vllm.expected_engine import ExpectedEngine, expected_engine
from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe, WeightUpdates
from rlaudit.laboratory.study import EngineWanted
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.laboratory.weight_path import WeightPath, loading_path
from rlaudit.vllm.cpu_block_size import smallest_cpu_block
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolution.engine import EngineKind, variables_for

BEFORE, COLD, FLIGHT, AFTER, UNSHARED = "before", "cold", "flight", "after", "unshared"
COLD_AFTER, WARM_AFTER, RECOVERED = "cold after", "warm after", "recovered"
# So long a dead engine may call itself healthy before that is a finding.
WATCH_SECONDS = 10

Step = dict[str, Any]


class CaseKind(StrEnum):
    """What a case is for."""

    MATRIX = "matrix"
    ROW = "in a row"
    PATH = "path"
    PLANTED = "planted"
    FAULT = "fault"


# Cases that are judged as a trainer's update would be: whole, and with requests in flight.
OF_MATRIX = (CaseKind.MATRIX, CaseKind.ROW)
# Cases that break nothing and leave nothing out.
HONEST = (*OF_MATRIX, CaseKind.PATH)


@dataclass(frozen=True)
class UpdateCase:
    """One course of requests and updates.

    `mode` is none where the engine is not paused. planted, late: parts of tensor names that its update leaves out, and
    that it sends again as they were. go_on: whether a step that fails leaves the rest to be played.
    """

    name: str
    kind: CaseKind
    steps: tuple[Step, ...]
    mode: str = "keep"
    clear_cache: bool = True
    fault: str | None = None
    planted: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    go_on: bool = False

    def as_job(self) -> dict[str, Any]:
        """The case as the worker script reads it."""
        return {"name": self.name, "go_on": self.go_on, "steps": list(self.steps)}


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
        return {
            **(ENGINE.on_cpu if device == "cpu" else {}),
            **ieee_float32(device, self.engine_args.get("dtype")),
            **variables_for(self.engine, Version(self.version)),
            **self.environment_variables,
        }

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
    starts: list[EngineStart] = []
    for entry, engine in enumerate(settings.engines):
        shared = {
            **_usual_args(engine.version, recipe.dtype, device),
            **recipe.engine_args,
            **engine.engine_args,
        }
        requests = Requests(prompts, settings.samples, recipe.seed)
        own_path = loading_path(engine.path, engine.transport, engine.engine, device)
        named = len(starts)
        starts += [
            _matrix_start(engine, own_path, settings, requests, shared, caching, scheduling)
            for scheduling in engine.async_scheduling or ("",)
            for caching in engine.prefix_caching
        ]
        # Where there is a matrix, it shows what its own path updates from disk.
        shown = engine.modes and engine.transport == "disk"
        others = [path for path in engine.other_paths if path != own_path or not shown]
        if engine.transport != "disk" and own_path not in others:
            others.insert(0, own_path)
        starts += [_path_start(engine, own_path, settings, requests, shared, path) for path in others]
        starts += [_fault_start(engine, own_path, settings, requests, shared, fault) for fault in engine.faults]
        said = {"engine": engine.engine} if engine.engine else {}
        brought = {"transport": engine.transport} if engine.transport != "disk" else {}
        own = tuple(f"{name}={value}" for name, value in {**said, **brought, **engine.engine_args}.items())
        starts[named:] = [
            replace(
                start,
                name=", ".join([start.name, *own]),
                engine=engine.engine,
                environment_variables=recipe.environment_variables,
                entry=entry,
                own=own,
                transport=engine.transport,
            )
            for start in starts[named:]
        ]
    starts = [start for start in starts if start.cases]
    twice = [name for name, times in Counter(start.name for start in starts).items() if times > 1]
    if twice:
        raise UsageError(
            f"two engine starts of the recipe are called {twice[0]!r}",
            "put what is tried on one release into one entry",
        )
    return tuple(starts)


def _usual_args(version: str, dtype: str, device: str) -> dict[str, Any]:
    if device != "cpu":
        return {"dtype": dtype}
    return {
        "dtype": dtype,
        "enforce_eager": True,
        "block_size": smallest_cpu_block(Version(version)),
        "max_model_len": 256,
        "max_num_batched_tokens": 8192,
    }


@dataclass(frozen=True)
class Requests:
    """Who asks what. Prompts 0 .. prompts-1 are shared by all runs; prompt + prompts is the unshared twin."""

    prompts: int
    samples: int
    seed: int

    def of(self, samples: int | None = None, *, unshared: bool = False, stream: int = 0) -> list[dict[str, int]]:
        """Requests with seeds that depend on prompt, sample and stream only: runs of one stream can be paired."""
        wanted = samples or self.samples
        offset = self.prompts if unshared else 0
        return [
            {
                "prompt": prompt + offset,
                "sample": sample,
                "seed": (self.seed * 1_000_003 + stream * 10_007 + (prompt + offset) * 101 + sample) % 2**31,
            }
            for prompt in range(self.prompts)
            for sample in range(wanted)
        ]


def unshared(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The prompts, each behind a token that stands nowhere else in front: its first block is in no cache."""
    starting = {prompt[0] for prompt in prompts}
    free = (token for token in range(1000, 1_000_000) if token not in starting)
    return [[next(free), *prompt] for prompt in prompts]


def _submit(run: str, requests: list[dict[str, int]], max_tokens: int, until: int | None = None) -> Step:
    return {"do": "submit", "run": run, "requests": requests, "max_tokens": max_tokens, "until": until}


def _update(
    version: int,
    mode: str,
    clear_cache: bool,
    while_paused: list[Step],
    skip: Sequence[str] = (),
    late: Sequence[str] = (),
) -> Step:
    return {
        "do": "update",
        "version": str(version),
        "mode": mode,
        "clear_cache": clear_cache,
        "while_paused": while_paused,
        "skip": list(skip),
        "late": list(late),
    }


def _matrix_start(
    engine: EngineToUpdate,
    path: WeightPath,
    settings: WeightUpdates,
    requests: Requests,
    shared: Mapping[str, Any],
    caching: str,
    scheduling: str,
) -> EngineStart:
    levels = {"prefix-caching": caching, **({"async-scheduling": scheduling} if scheduling else {})}
    arguments = {**shared, "enable_prefix_caching": caching == "on"}
    if scheduling:
        arguments["async_scheduling"] = scheduling == "on"
    clears = {mode: engine.clear_cache if mode != "none" else [False] for mode in engine.modes}
    cases = [
        matrix_case(mode, clear, settings, requests, read_back=place == 0)
        for place, (mode, clear) in enumerate((mode, clear) for mode in engine.modes for clear in clears[mode])
    ]
    if engine.in_a_row > 1 and caching == "on" and "keep" in engine.modes:
        cases.append(row_case(settings, requests, engine.in_a_row))
    words = ", ".join(f"{factor}={level}" for factor, level in levels.items())
    return EngineStart(f"vLLM {engine.version}, {words}", engine.version, path, arguments, tuple(cases), levels)


def matrix_case(mode: str, clear: bool, settings: WeightUpdates, requests: Requests, *, read_back: bool) -> UpdateCase:
    """One cell of the matrix, as the module describes it."""
    after = settings.after_tokens
    paused = [
        _submit(AFTER, requests.of(stream=2), after),
        _submit(UNSHARED, requests.of(1, unshared=True, stream=2), after),
    ]
    steps = [
        {"do": "restore"},
        _submit(COLD, requests.of(1), 1),
        _submit(FLIGHT, requests.of(stream=1), settings.flight_tokens, until=settings.flight_tokens // 3),
        _update(1, mode, clear, paused),
        {"do": "settle"},
        *([{"do": "read_back"}] if read_back else []),
        {"do": "reset_prefix_cache"},
        _submit(COLD_AFTER, requests.of(stream=2), after),
        _submit(WARM_AFTER, requests.of(stream=2), after),
    ]
    name = f"mode={mode}, clear_cache={clear}" if mode != "none" else "no pause"
    return UpdateCase(name, CaseKind.MATRIX, tuple(steps), mode, clear)


def row_case(settings: WeightUpdates, requests: Requests, updates: int) -> UpdateCase:
    """Several updates of one flight without clearing: lags up to `updates`, and how long stale blocks live."""
    flight, after = settings.flight_tokens, settings.after_tokens
    steps: list[Step] = [
        {"do": "restore"},
        _submit(COLD, requests.of(1), 1),
        _submit(FLIGHT, requests.of(stream=1), flight, until=flight // (updates + 1)),
    ]
    for number in range(1, updates + 1):
        steps.append(_update(number, "keep", False, []))
        if number < updates:
            steps.append({"do": "advance", "run": FLIGHT, "until": flight * (number + 1) // (updates + 1)})
    steps.append({"do": "settle"})
    steps += [
        _submit(AFTER, requests.of(stream=2), after),
        {"do": "reset_prefix_cache"},
        _submit(COLD_AFTER, requests.of(stream=2), after),
        _submit(WARM_AFTER, requests.of(stream=2), after),
    ]
    return UpdateCase(
        f"{updates} updates in a row, mode=keep, clear_cache=False", CaseKind.ROW, tuple(steps), "keep", False
    )


def _path_start(
    engine: EngineToUpdate,
    own_path: WeightPath,
    settings: WeightUpdates,
    requests: Requests,
    shared: Mapping[str, Any],
    path: str,
) -> EngineStart:
    cases = [path_case(settings, requests)]
    if path == ("reload_from_iterator" if engine.transport == "disk" else own_path):
        plants = [{"planted": tuple(engine.planted)}, {"late": tuple(engine.planted_late)}]
        # What another process sends may meet requests in flight in a way of its own.
        ways = [False] if engine.transport == "disk" else [False, True]
        cases += [
            path_case(settings, requests, **plant, in_flight=in_flight)
            for plant in plants
            if any(plant.values())
            for in_flight in ways
        ]
    return EngineStart(
        f"vLLM {engine.version}, path {path}",
        engine.version,
        path,
        {**shared, "enable_prefix_caching": "on" in engine.prefix_caching},
        tuple(cases),
        {"path": path},
    )


def path_case(
    settings: WeightUpdates,
    requests: Requests,
    *,
    planted: tuple[str, ...] = (),
    late: tuple[str, ...] = (),
    in_flight: bool = False,
) -> UpdateCase:
    """One update, of an idle engine or of one with requests in flight, what it holds afterwards, and what it samples
    before and after."""
    length = settings.flight_tokens if in_flight else settings.after_tokens
    until = length // 3 if in_flight else None
    mode, clear = ("keep", False) if in_flight else ("wait", True)
    steps = (
        {"do": "restore"},
        _submit(FLIGHT if in_flight else BEFORE, requests.of(stream=1), length, until),
        _update(1, mode, clear, [], planted, late),
        {"do": "settle"},
        {"do": "read_back"},
        {"do": "reset_prefix_cache"},
        _submit(COLD_AFTER, requests.of(stream=2), settings.after_tokens),
    )
    kind = CaseKind.PLANTED if planted or late else CaseKind.PATH
    return UpdateCase(_path_name(planted, late, in_flight), kind, steps, mode, clear, None, planted, late, go_on=True)


def _path_name(planted: Sequence[str], late: Sequence[str], in_flight: bool) -> str:
    met = ", requests in flight" if in_flight else ""
    if planted:
        return f"planted: {', '.join(planted)} left out{met}"
    if late:
        return f"planted: {', '.join(late)} sent again, as before{met}"
    return f"what the path updates{met}"


def _fault_start(
    engine: EngineToUpdate,
    path: WeightPath,
    settings: WeightUpdates,
    requests: Requests,
    shared: Mapping[str, Any],
    fault: str,
) -> EngineStart:
    flight = _submit(FLIGHT, requests.of(1, stream=1), settings.flight_tokens, until=2)
    pause = {"mode": "keep", "clear_cache": False}
    if fault == "killed":
        steps: list[Step] = [flight, {"do": "pause", **pause}, {"do": "kill"}]
        steps += [{"do": "health", "watch": WATCH_SECONDS}, {"do": "resume"}]
    else:
        update = {"do": "update", "version": fault, **pause, "while_paused": [], "skip": [], "late": []}
        steps = [flight, update, {"do": "settle"}, {"do": "health"}, {"do": "read_back"}]
        steps += [{"do": "restore"}, {"do": "resume"}]
        steps.append(_submit(RECOVERED, requests.of(1, stream=2), settings.after_tokens))
    case = UpdateCase(fault, CaseKind.FAULT, tuple(steps), "keep", False, fault=fault, go_on=True)
    return EngineStart(
        f"vLLM {engine.version}, fault {fault}",
        engine.version,
        path,
        {**shared, "enable_prefix_caching": "on" in engine.prefix_caching},
        (case,),
        {"fault": fault},
    )
