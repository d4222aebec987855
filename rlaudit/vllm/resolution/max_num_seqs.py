"""How many sequences run at once: 256 in V0; in V1 by the memory of the GPU.

The batch that a token is computed in decides which kernels run and in which order they add.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, number

_ARGUMENTS = "vllm/engine/arg_utils.py"
_WORDS = ("max_num_seqs", "default_max_num_seqs")
LARGE_GIB = 70
_OF_BARE = (128, "V1's default for an engine that a program makes itself")


def large(view: Resolution) -> bool:
    """Return whether vLLM counts the GPU as large: 70 GiB or more; A100 does not count since 0.9.0."""
    machine = view.machine
    return machine.memory_gib >= LARGE_GIB and not ("a100" in machine.name.lower() and view.since("0.9.0"))


def apply(view: Resolution) -> Resolved | None:
    """Return the default of the engine, platform and memory."""
    if view.given("max_num_seqs") is not None:
        return None
    if view.is_v1 is None:
        return engine_unknown(view, "max_num_seqs")
    if not view.is_v1:
        return Resolved(256, "V0's default")
    default, why = _OF_BARE if view.bare and view.since("0.9.2") else _of_v1(view)
    if isinstance(default, Unknown):
        return Resolved(default, why)
    if view.since("0.17.0") and view.given("performance_mode") == "throughput":
        default *= 2
    tokens = number(view.given("max_num_batched_tokens"))
    if tokens is not None and tokens < default and view.since("0.10.1"):
        return Resolved(tokens, "no more than max_num_batched_tokens")
    return Resolved(default, why)


def _of_v1(view: Resolution) -> tuple[int | Unknown, str]:
    if view.machine.platform == "cpu":
        if not view.since("0.9.2"):
            return Unknown("the default depends on the machine's memory"), "V1 on a CPU"
        ranks = world_size(view)
        if isinstance(ranks, Unknown):
            return ranks, "times the number of ranks on a CPU"
        if not view.since("0.10.0"):
            return (128 if view.offline else 32), "V1's default on a CPU"
        return (256 if view.offline else 128) * ranks, "V1's default on a CPU, times the number of ranks"
    if large(view):
        return 1024, f"V1's default for a GPU with at least {LARGE_GIB} GiB"
    return 256, f"V1's default for {view.machine.name}"


def world_size(view: Resolution) -> int | Unknown:
    """Return tensor parallel times pipeline parallel ranks."""
    ranks = 1
    for name in ("tensor_parallel_size", "pipeline_parallel_size"):
        value = view.given(name)
        if isinstance(value, Unknown):
            return value
        ranks *= number(value) or 1
    return ranks


RESOLUTION = ResolutionRule(
    "max_num_seqs",
    (
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v0", _WORDS),
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v1", _WORDS),
        Function(_ARGUMENTS, "EngineArgs._set_default_args", _WORDS),
        Function(_ARGUMENTS, "EngineArgs._set_default_max_num_seqs_and_batched_tokens_args", _WORDS),
        Function(_ARGUMENTS, "EngineArgs.get_batch_defaults", ("default_max_num_seqs", "device_memory")),
    ),
    apply,
)
