"""What a training really ran with: each engine of a recording, as it was written, and as vLLM resolved it.

For the recorded release every value is known. For another one, a value that the old release chose by itself is no
setting: only what was written, what the environment set and what requests brought carries over.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.recorded_source import DIALECT_NAME, RecordedSource, release_of
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.vllm_inputs.recorded_facts import recorded_facts, recorded_sentences
from rlaudit.recorder.deaths import shown_steps
from rlaudit.recorder.recorded_engine import RecordedEngine, recorded_engines
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.vllm.catalogue import Catalogue, Declared
from rlaudit.vllm.config_objects import ARGUMENTS, RENAMED
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING
from rlaudit.vllm.resolution.engine import VARIABLE, has_v0

# vLLM sets these itself while it starts (0.8.5 envs.py:759, executor/ray_distributed_executor.py:77,
# 0.18.1 config/parallel.py:755, platforms/cpu.py:199-282 and entrypoints/utils.py:171, 0.32.0 config/vllm.py:817 and
# platforms/cpu.py:438).
SET_BY_VLLM = frozenset({
    VARIABLE, "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_USE_RAY_SPMD_WORKER",
    "VLLM_USE_RAY_COMPILED_DAG", "VLLM_USE_RAY_COMPILED_DAG_CHANNEL_TYPE", "VLLM_DISABLE_SHARED_EXPERTS_STREAM",
    "VLLM_CPU_NUM_OF_RESERVED_CPU", "VLLM_DIST_IDENT", "VLLM_USE_BREAKABLE_CUDAGRAPH", "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCHINDUCTOR_COMPILE_THREADS", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "VLLM_SSM_CONV_STATE_LAYOUT",
})  # fmt: skip
# Requests bring every parameter: these are what rollouts are about, and of the others what is not at its default.
_SAMPLING = (*NEUTRAL_SAMPLING, "n", "logprobs", "prompt_logprobs", "max_tokens")
# Where a server's arguments are parsed: `vllm serve`, and the module that older releases start.
_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm/entrypoints/openai/api_server.py")


def recorded_configs(source: RecordedSource, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every engine of the recording, as the given release gets it."""
    return tuple(_config(source, one, vllm) for one in recorded_engines(source.recording))


def _config(source: RecordedSource, one: RecordedEngine, vllm: Version) -> RolloutConfig:
    draft = Draft(DIALECT_NAME, source.path)
    release = release_of(one.process)
    file = str(one.process.file)
    place = Place(file, one.engine.line, 1, "")
    same = release == vllm
    _written(draft, one, file)
    if same and one.started:
        _effective(draft, one, vllm, place)
    _environment(draft, one, release, same, file)
    _sampling(draft, one, release or vllm)
    for facts, note in recorded_facts(one, source.recording):
        for name, value in facts.given().items():
            draft.trainer[name] = Setting(name, value, None, Origin.FILE, None, note)
    for package, version in one.process.versions.items():
        draft.options[package] = Setting(package, version, version, Origin.FILE, Place(file, 1, 1, package))
    draft.recorded = tuple(recorded_sentences(one, source.recording))
    draft.last_steps = tuple(shown_steps(one.processes))
    draft.checkpoint = _checkpoint(one)
    draft.not_seen = list(_not_seen(one, source, release))
    draft.bare = one.engine.class_name == "AsyncEngineArgs" and not _is_server(one.process.argv)
    return draft.done(
        model=Node(str(one.engine.written["model"]), Place(file, one.engine.line, 1, "model"))
        if "model" in one.engine.written
        else None,
        offline=one.engine.class_name == "EngineArgs",
        place=place,
    )


def _written(draft: Draft, one: RecordedEngine, file: str) -> None:
    for name, value in one.engine.written.items():
        if name != "model" and not name.startswith("_"):  # `vllm serve` counts its API servers in private ones
            place = Place(file, one.engine.line, 1, name)
            draft.engine[name] = Setting(name, value, value, Origin.FILE, place)


def _effective(draft: Draft, one: RecordedEngine, vllm: Version, home: Place) -> None:
    """What vLLM made of it. Config objects that are arguments are filled in by vLLM: they stay as they are written."""
    catalogue = Catalogue.at(vllm)
    for name, resolved in effective_arguments(one.engine.effective or {}):
        declared = catalogue.engine.get(name)
        if declared is None or declared.config or name == "model":
            continue
        value = _as_declared(resolved, declared)
        given = draft.engine.get(name)
        if value == (None if given is None else given.value):
            continue
        place = given.place if given is not None else Place(home.path, home.line, 1, name)
        note = f"as vLLM {vllm} resolved it when it ran"
        draft.engine[name] = Setting(name, value, None if given is None else given.written, Origin.ENGINE, place, note)


def _as_declared(value: Any, declared: Declared) -> Any:
    """Return a member of an enumeration in the word that the argument takes (`RAW_LOGPROBS` of 0.10.2)."""
    alike = (word for word in declared.choices or () if isinstance(value, str) and word.lower() == value.lower())
    return next(alike, value)


def effective_arguments(effective: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a resolved configuration by the names of the engine's arguments, each name once."""
    known: set[str] = set()
    for section, fields in effective.items():
        if section in ARGUMENTS or not isinstance(fields, Mapping):
            continue
        for field, value in fields.items():
            name = RENAMED.get(field, field)
            if name not in known:
                known.add(name)
                yield name, value.removeprefix("torch.") if isinstance(value, str) else value


def _checkpoint(one: RecordedEngine) -> Mapping[str, Any] | None:
    """Return the model's config.json as transformers read it, its dtype under both names; None if it was not recorded,
    or with names that are hashes."""
    model = (one.engine.effective or {}).get("model_config")
    found = model.get("hf_config") if isinstance(model, Mapping) else None
    if one.process.redacted or not isinstance(found, Mapping) or not found.get("architectures"):
        return None
    dtype = str(found.get("dtype") or found.get("torch_dtype") or "").removeprefix("torch.")
    return {**found, **({"dtype": dtype, "torch_dtype": dtype} if dtype else {})}


def _environment(draft: Draft, one: RecordedEngine, release: Version | None, same: bool, file: str) -> None:
    chooses = release is not None and has_v0(release)
    for name, value in one.process.environment.items():
        place = Place(file, 1, 1, name)
        if name not in SET_BY_VLLM or (name == VARIABLE and not chooses):
            draft.environment[name] = Setting(name, value, value, Origin.FILE, place)
        elif same:
            draft.environment[name] = Setting(name, value, None, Origin.ENGINE, place, "vLLM may have set it itself")
    kind = generation(one)
    if same and kind is not None and chooses:
        note = f"the {kind} engine started"
        place = Place(file, one.engine.line, 1, VARIABLE)
        draft.environment[VARIABLE] = Setting(VARIABLE, kind[1], None, Origin.ENGINE, place, note)


def generation(one: RecordedEngine) -> str | None:
    """V0 or V1, by the class of the workers, else by the hooks that were called; None if neither tells."""
    parallel = (one.engine.effective or {}).get("parallel_config")
    resolved = parallel.get("worker_cls") if isinstance(parallel, Mapping) else None
    called = (call.what for process in one.processes for call in process.calls)
    for name in (*one.worker_classes, resolved, *called):
        if isinstance(name, str) and name.startswith("vllm."):
            return "V1" if name.startswith("vllm.v1.") else "V0"
    return None


def _sampling(draft: Draft, one: RecordedEngine, release: Version) -> None:
    """The parameters of most requests; the others stand in a sentence."""
    sampled = one.sampled
    if not sampled:
        return
    most = sampled[0]
    declared = Catalogue.at(release).sampling
    for name, value in most.parameters.items():
        if name in _SAMPLING or (name in declared and declared[name].default != value):
            place = Place(str(most.process.file), most.line, 1, name)
            draft.sampling[name] = Setting(name, value, value, Origin.FILE, place)


def _is_server(argv: tuple[str, ...]) -> bool:
    return "serve" in argv[1:2] or any(argument.endswith(_SERVERS) for argument in argv)


def _not_seen(one: RecordedEngine, source: RecordedSource, release: Version | None) -> Iterator[str]:
    if release is None:
        yield "the release of vLLM: it is a build without one"
    if not one.started:
        yield "what vLLM makes of the arguments: the engine did not start"
    if not one.sampled:
        yield "sampling parameters: no request was recorded"
    if not any(process.records.get("trainer") for process in source.recording.processes):
        yield "the trainer's logprobs: no function of a trainer was recorded"
    yield from source.recording.missing
