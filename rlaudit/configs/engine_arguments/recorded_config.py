"""The configs of a recording: each engine, as it was written, and as vLLM resolved it.

For the recorded release every value is known. For another one, a value that the old release chose by itself is no
setting: only what was written, what the environment set and what requests brought carries over.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.engine_arguments.recorded_facts import recorded_facts, recorded_sentences
from rlaudit.configs.recorded_source import DIALECT_NAME, RecordedSource, release_of
from rlaudit.configs.syntax.node import Node
from rlaudit.recording.recorded_engine import RecordedEngine
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
# Requests carry every parameter. These are always shown, the others only if they are not at their default.
_SAMPLING = (*NEUTRAL_SAMPLING, "n", "logprobs", "prompt_logprobs", "max_tokens")
# The module that older releases start as a server.
_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm/entrypoints/openai/api_server.py")


def recorded_configs(source: RecordedSource, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every engine of the recording, as the given release gets it."""
    return tuple(_config(source, recorded, vllm) for recorded in source.recording.engines)


def _config(source: RecordedSource, recorded: RecordedEngine, vllm: Version) -> RolloutConfig:
    draft = Draft(DIALECT_NAME, source.path)
    release = release_of(recorded.process)
    file = str(recorded.process.file)
    place = Place(file, recorded.engine.line, 1, "")
    is_same = release == vllm
    _written(draft, recorded, file)
    if is_same and recorded.started:
        _effective(draft, recorded, vllm, place)
    _environment(draft, recorded, release, is_same, file)
    _sampling(draft, recorded, release or vllm)
    for facts, note in recorded_facts(recorded, source.recording):
        for name, value in facts.given().items():
            draft.trainer[name] = Setting(name, value, None, Origin.FILE, None, note)
    for package, version in recorded.process.versions.items():
        draft.options[package] = Setting(package, version, version, Origin.FILE, Place(file, 1, 1, package))
    draft.recorded = tuple(recorded_sentences(recorded, source.recording))
    draft.checkpoint = _checkpoint(recorded)
    draft.not_seen = list(_not_seen(recorded, source, release))
    draft.bare = recorded.engine.class_name == "AsyncEngineArgs" and not _is_server(recorded.process.argv)
    return draft.done(
        model=Node(str(recorded.engine.written["model"]), Place(file, recorded.engine.line, 1, "model"))
        if "model" in recorded.engine.written
        else None,
        offline=recorded.engine.class_name == "EngineArgs",
        place=place,
    )


def _written(draft: Draft, recorded: RecordedEngine, file: str) -> None:
    for name, value in recorded.engine.written.items():
        if name != "model" and not name.startswith("_"):  # `vllm serve` counts its API servers in private ones
            place = Place(file, recorded.engine.line, 1, name)
            draft.engine[name] = Setting(name, value, value, Origin.FILE, place)


def _effective(draft: Draft, recorded: RecordedEngine, vllm: Version, home: Place) -> None:
    """Set the resolved values. Config objects that are arguments stay as they are written: vLLM fills them in."""
    catalogue = Catalogue.at(vllm)
    for name, resolved in effective_arguments(recorded.engine.effective or {}):
        declared = catalogue.engine.get(name)
        if declared is None or declared.config or name == "model":
            continue
        value = _as_declared(resolved, declared)
        old = draft.engine.get(name)
        if value == (None if old is None else old.value):
            continue
        place = old.place if old is not None else Place(home.path, home.line, 1, name)
        note = f"as vLLM {vllm} resolved it when it ran"
        draft.engine[name] = Setting(name, value, None if old is None else old.written, Origin.ENGINE, place, note)


def _as_declared(value: Any, declared: Declared) -> Any:
    """Return a member of an enumeration (`RAW_LOGPROBS` of 0.10.2) in the argument's spelling."""
    alike = (word for word in declared.choices or () if isinstance(value, str) and word.lower() == value.lower())
    return next(alike, value)


def effective_arguments(effective: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a resolved configuration by the names of the engine's arguments, each name once."""
    names: set[str] = set()
    for section, fields in effective.items():
        if section in ARGUMENTS or not isinstance(fields, Mapping):
            continue
        for field, value in fields.items():
            name = RENAMED.get(field, field)
            if name not in names:
                names.add(name)
                yield name, value.removeprefix("torch.") if isinstance(value, str) else value


def _checkpoint(recorded: RecordedEngine) -> Mapping[str, Any] | None:
    """Return the model's config.json as transformers read it, its dtype under both names; None if it was not recorded
    or its names are hashes."""
    model = (recorded.engine.effective or {}).get("model_config")
    config = model.get("hf_config") if isinstance(model, Mapping) else None
    if recorded.process.redacted or not isinstance(config, Mapping) or not config.get("architectures"):
        return None
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    return {**config, **({"dtype": dtype, "torch_dtype": dtype} if dtype else {})}


def _environment(draft: Draft, recorded: RecordedEngine, release: Version | None, is_same: bool, file: str) -> None:
    has_both = release is not None and has_v0(release)
    for name, value in recorded.process.environment.items():
        place = Place(file, 1, 1, name)
        if name not in SET_BY_VLLM or (name == VARIABLE and not has_both):
            draft.environment[name] = Setting(name, value, value, Origin.FILE, place)
        elif is_same:
            draft.environment[name] = Setting(name, value, None, Origin.ENGINE, place, "vLLM may have set it itself")
    kind = generation(recorded)
    if is_same and kind is not None and has_both:
        note = f"the {kind} engine started"
        place = Place(file, recorded.engine.line, 1, VARIABLE)
        draft.environment[VARIABLE] = Setting(VARIABLE, kind[1], None, Origin.ENGINE, place, note)


def generation(recorded: RecordedEngine) -> str | None:
    """Return V0 or V1, by the class of the workers, else by the hooks that were called; None if unknown."""
    parallel = (recorded.engine.effective or {}).get("parallel_config")
    resolved = parallel.get("worker_cls") if isinstance(parallel, Mapping) else None
    called = (call.what for process in recorded.processes for call in process.calls)
    for name in (*recorded.worker_classes, resolved, *called):
        if isinstance(name, str) and name.startswith("vllm."):
            return "V1" if name.startswith("vllm.v1.") else "V0"
    return None


def _sampling(draft: Draft, recorded: RecordedEngine, release: Version) -> None:
    """Set the parameters of most requests; the others are listed in sentences."""
    sampled = recorded.sampled
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


def _not_seen(recorded: RecordedEngine, source: RecordedSource, release: Version | None) -> Iterator[str]:
    if release is None:
        yield "the release of vLLM is not known: this build has no release number"
    if not recorded.started:
        yield "the engine did not start, so it is not known what vLLM makes of the arguments"
    if not recorded.sampled:
        yield "sampling parameters were not seen: no request was recorded"
    if not any(process.trainer for process in source.recording.processes):
        yield "the trainer's logprobs were not seen: no function of a trainer was recorded"
    yield from source.recording.missing
