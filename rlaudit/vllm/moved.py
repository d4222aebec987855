"""What moves between two vLLM releases under any config: the migration seen from vLLM's side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from packaging.version import Version

from rlaudit.layers import Layer
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, Declared
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.removed import removed, removed_imports
from rlaudit.vllm.resolve import resolution_rules, resolve

# Why a value matters for the logprobs that a trainer gets: layer and one clause, the most telling first.
_PATH = Layer.INFERENCE_PATH
_OTHER_SAMPLER = "the sampler differs: a seed gives other tokens, and logits processors run in another order"
_REJECTION = "FlashInfer samples top-k and top-p by rejection, so the same seed gives other tokens"
WHY: Mapping[str, tuple[Layer, str]] = {
    "engine": (Layer.SEMANTIC, "V0 and V1 return logprobs of different distributions and share little code"),
    "logprobs_semantics": (Layer.SEMANTIC, "the trainer's ratio is wrong unless it computes the same kind of logprob"),
    "logprobs_mode": (Layer.SEMANTIC, "this mode decides which distribution the returned logprobs belong to"),
    "max_logprobs": (Layer.SEMANTIC, "a request for more logprobs is refused"),
    "generation_config": (Layer.SEMANTIC, "the model's file fills in sampling parameters that a request leaves open"),
    "request_defaults": (Layer.SEMANTIC, "sampling parameters that no request names shape the distribution"),
    "model_runner": (_PATH, _OTHER_SAMPLER),
    "enable_prefix_caching": (_PATH, "keys and values of old weights survive an update unless it resets the cache"),
    "async_scheduling": (_PATH, "batches are composed differently, and a pause finds tokens already under way"),
    "enable_chunked_prefill": (_PATH, "prompts are computed in other batch shapes, so with other rounding"),
    "disable_cascade_attn": (
        _PATH,
        "in large batches, cascade attention sums the attention to a shared prefix separately",
    ),
    "max_num_batched_tokens": (_PATH, "the size of a prefill chunk decides kernels and rounding"),
    "max_num_seqs": (_PATH, "the decode batch decides kernels and rounding"),
    "cudagraph_mode": (_PATH, "captured batches are padded, and kernels are chosen for the padded size"),
    "compilation_mode": (_PATH, "a compiled model fuses operations and rounds in other places"),
    "attention_backend": (_PATH, "other attention kernels round differently"),
    "fuse_allreduce_rms": (_PATH, "with the fusion, the sum over ranks is rounded one time less"),
    "flashinfer_sampler": (_PATH, _REJECTION),
    "seed": (_PATH, "one seed for all replicas makes them sample the same tokens for the same prompt"),
    "dtype": (_PATH, "float16 and bfloat16 differ by three bits of mantissa"),
    "kv_cache_dtype": (_PATH, "an fp8 cache costs more precision than everything else here"),
    "prefix_caching_hash_algo": (_PATH, "with a weak hash, different prompts can get the same cached block"),
    "block_size": (
        _PATH,
        "the prefix cache shares only whole blocks, so it shares more or less of a prefix than before",
    ),
    "enforce_eager": (_PATH, "compiled kernels fuse operations and round differently"),
    "optimization_level": (_PATH, "this level decides which fusions the compiler makes"),
    "gpu_memory_utilization": (_PATH, "the number of blocks decides when requests are preempted and recomputed"),
    "distributed_executor_backend": (_PATH, "the executor decides whether vLLM can use async scheduling"),
    "VLLM_ALLREDUCE_USE_SYMM_MEM": (_PATH, "another algorithm sums over tensor parallel ranks"),
    "VLLM_ALLREDUCE_USE_FLASHINFER": (_PATH, "another algorithm sums over tensor parallel ranks"),
    "VLLM_USE_DEEP_GEMM": (_PATH, "other kernels multiply fp8 matrices"),
    "VLLM_USE_FLASHINFER_SAMPLER": (_PATH, _REJECTION),
    "VLLM_USE_V2_MODEL_RUNNER": (_PATH, _OTHER_SAMPLER),
    "VLLM_USE_RAY_V2_EXECUTOR_BACKEND": (_PATH, "with this variable, Ray supports async scheduling, too"),
    "pause_generation": (_PATH, "the pause decides whether running requests keep keys and values of old weights"),
    "reset_prefix_cache": (_PATH, "this call decides what remains in the cache after a weight update"),
}
# The longest text of a value in a line.
_WIDEST = 60
_NOTHING: tuple[Any, ...] = (None, {}, [], "")


class Change(StrEnum):
    """What happened to a name between the releases."""

    VALUE = "changed"
    REMOVED = "removed"
    ADDED = "added"


class VllmPart(StrEnum):
    """The part of vLLM to which a name belongs."""

    # A value with which an engine runs, even against its declaration.
    RESOLVED = "resolved"
    ARGUMENT = "argument"
    FLAG = "flag"
    VARIABLE = "variable"
    SAMPLING = "sampling parameter"
    METHOD = "method"
    IMPORT = "import"


@dataclass(frozen=True)
class Moved:
    """One value or name that differs between two releases."""

    change: Change
    part: VllmPart
    name: str
    # None if the older release has no value.
    before: Any
    # None if the newer release has no value.
    after: Any
    layer: Layer
    # Why vLLM decides so, with its source line; for a removed name what happens to a config that still has it.
    note: str = ""
    # Why it matters for logprobs; for a removed name what to write instead. Empty if that is not known.
    why: str = ""


def moved(before: Version, after: Version, machine: Machine) -> tuple[Moved, ...]:
    """Return everything that moves, first the values with which an engine runs.

    Raises UsageError for a version older than the catalogue.
    """
    old, new = Catalogue.at(before), Catalogue.at(after)
    resolved = moved_values(before, after, machine)
    taken = {value.name for value in resolved} | set(resolution_rules())
    return (
        *resolved,
        *(default for default in _defaults(VllmPart.ARGUMENT, old.engine, new.engine) if default.name not in taken),
        *_defaults(VllmPart.VARIABLE, old.variables, new.variables),
        *_defaults(VllmPart.SAMPLING, old.sampling, new.sampling),
        *_methods(old, new),
        *_names(old, new),
        *_imports(before, after),
    )


def _value(part: VllmPart, name: str, before: Any, after: Any, note: str = "") -> Moved:
    layer, why = WHY.get(name, (Layer.INFERENCE_PATH, ""))
    return Moved(Change.VALUE, part, name, before, after, layer, note, why)


def moved_and_decides(before: Version, after: Version, machine: Machine) -> list[Moved]:
    """Return the values that move and can change logprobs."""
    moves = moved(before, after, machine)
    return [move for move in moves if move.change is Change.VALUE and (move.part is VllmPart.RESOLVED or move.why)]


def moved_values(before: Version, after: Version, machine: Machine, v0: bool = False) -> tuple[Moved, ...]:
    """Return the values with which an engine runs under an empty config, if they move.

    v0: the old release runs with VLLM_USE_V1=0, as most runs before the migration did.
    """
    forced = Setting("VLLM_USE_V1", "0", "0", Origin.FILE)
    configs = RolloutConfig("vllm", "", environment={forced.name: forced} if v0 else {}), RolloutConfig("vllm", "")
    sides = [
        resolve(config, Catalogue.at(version), machine)
        for config, version in zip(configs, (before, after), strict=True)
    ]
    values = []
    for name in resolution_rules():
        was, is_now = (side.setting(name) for side in sides)
        both_unknown = isinstance(was.value, Unknown) and isinstance(is_now.value, Unknown)
        if was.value != is_now.value and not both_unknown:
            values.append(_value(VllmPart.RESOLVED, name, was.value, is_now.value, is_now.note))
    order = [*WHY]
    return tuple(sorted(values, key=lambda value: order.index(value.name) if value.name in WHY else len(order)))


def _defaults(part: VllmPart, old: Mapping[str, Declared], new: Mapping[str, Declared]) -> Iterator[Moved]:
    for name in sorted(set(old) & set(new)):
        before, after = old[name], new[name]
        if _have_same_meaning(before, after):
            continue
        yield _value(part, name, before.default, after.default, after.line)


def _have_same_meaning(before: Declared, after: Declared) -> bool:
    """Return whether two declarations mean the same, as a config object in place of "nothing given" does."""
    if before.default == after.default and type(before.default) is type(after.default):
        return True
    empty = [field.config != "" or field.default in _NOTHING for field in (before, after)]
    return all(empty) or (before.default in _NOTHING and after.default is False)


def _methods(old: Catalogue, new: Catalogue) -> Iterator[Moved]:
    for name in sorted(set(old.signatures) & set(new.signatures)):
        before, after = old.signature_defaults[name], new.signature_defaults[name]
        if before != after:
            yield _value(VllmPart.METHOD, name, _signature(before), _signature(after))


def _signature(parameters: Mapping[str, Any]) -> str:
    shown = [
        name if isinstance(default, dict) and default.get("required") else f"{name}={default!r}"
        for name, default in parameters.items()
    ]
    return f"({', '.join(shown)})"


def _names(old: Catalogue, new: Catalogue) -> Iterator[Moved]:
    engine_flags = {
        flag for catalogue in (old, new) for flag, field in catalogue.cli.items() if field in catalogue.engine
    }
    for part, listed, before, after in (
        (VllmPart.ARGUMENT, "engine", set(old.engine), set(new.engine)),
        (VllmPart.FLAG, "flag", set(old.cli) - engine_flags, set(new.cli) - engine_flags),
        (VllmPart.SAMPLING, "sampling", set(old.sampling), set(new.sampling)),
        (VllmPart.VARIABLE, "variable", set(old.variables), set(new.variables)),
        (VllmPart.METHOD, "method", set(old.signatures), set(new.signatures)),
    ):
        for name in sorted(before - after):
            removal = removed(listed, name, new.version)
            layer, _why = WHY.get(name, (Layer.INFERENCE_PATH, ""))
            effect, instead = (removal.effect, removal.instead) if removal is not None else ("", "")
            yield Moved(Change.REMOVED, part, name, _default(old, part, name), None, layer, effect, instead)
        for name in sorted(after - before):
            layer, why = WHY.get(name, (Layer.INFERENCE_PATH, ""))
            yield Moved(Change.ADDED, part, name, None, _default(new, part, name), layer, why=why)


def _imports(before: Version, after: Version) -> Iterator[Moved]:
    for gone in removed_imports(before, after):
        yield Moved(
            Change.REMOVED, VllmPart.IMPORT, gone.name, None, None, Layer.INFERENCE_PATH, gone.effect, gone.instead
        )


def _default(catalogue: Catalogue, part: VllmPart, name: str) -> Any:
    sections = {
        VllmPart.ARGUMENT: catalogue.engine,
        VllmPart.SAMPLING: catalogue.sampling,
        VllmPart.VARIABLE: catalogue.variables,
    }
    declared = sections.get(part, {}).get(name)
    return declared.default if declared is not None else None


def text_of(value: Any) -> str:
    """Return a value as a line shows it, cut if it is long."""
    if isinstance(value, Unknown):
        return f"unknown, as {value.reason}"
    text = "not set" if value is None else str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
