"""How many tokens one step computes: the size of a prefill chunk, and so the shape of every matrix product."""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolution.max_num_seqs import LARGE_GIB, large, world_size
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, number

_ARGUMENTS = "vllm/engine/arg_utils.py"
_WORDS = ("max_num_batched_tokens", "default_max_num_batched_tokens")
_SMALLEST = 2048
_HUGE_GIB = 160


def apply(view: Resolution) -> Resolved | None:
    """Return the default of the engine, platform and memory, and of a server or an in-process engine."""
    if view.given("max_num_batched_tokens") is not None:
        return None
    if view.is_v1 is None:
        return engine_unknown(view, "max_num_batched_tokens")
    return _of_v1(view) if view.is_v1 else _of_v0(view)


def _of_v0(view: Resolution) -> Resolved:
    chunked = view.value("enable_chunked_prefill")
    if chunked is True:
        return Resolved(_SMALLEST, "V0's default with chunked prefill", at="vllm/config")
    length = number(view.value("max_model_len"))
    if length is None:
        return Resolved(Unknown("V0 takes the context length, which is not known"), "V0 without chunked prefill")
    if isinstance(chunked, Unknown):
        return Resolved(Unknown("V0 takes 2048 with chunked prefill, else the context length"), "V0")
    return Resolved(
        max(length, _SMALLEST), "V0 without chunked prefill: the context length, at least 2048", at="vllm/config"
    )


def _of_v1(view: Resolution) -> Resolved:
    default, why = _default(view)
    if isinstance(default, Unknown):
        return Resolved(default, why)
    if view.since("0.17.0") and view.given("performance_mode") == "throughput":
        default, why = default * 2, f"{why}, doubled by performance_mode"
    if view.value("enable_chunked_prefill") is False:
        length = number(view.value("max_model_len"))
        if length is None:
            return Resolved(
                Unknown("the default is at least the context length, which is not known"), "without chunked prefill"
            )
        default = max(default, length)
    if view.since("0.11.1"):
        sequences, length = number(view.value("max_num_seqs")), number(view.value("max_model_len"))
        if sequences is not None and length is not None and sequences * length < default:
            return Resolved(sequences * length, "no more than max_num_seqs x max_model_len")
        if sequences is not None and length is None and sequences < default // _SMALLEST:
            return Resolved(
                Unknown("the default is no more than max_num_seqs x max_model_len, which is not known"), why
            )
    return Resolved(default, why)


def _default(view: Resolution) -> tuple[int | Unknown, str]:
    if view.bare:
        return _SMALLEST, "V1's default for an engine that a program makes itself"
    where = "in-process" if view.offline else "a server"
    if view.machine.platform == "cpu":
        ranks = world_size(view)
        if isinstance(ranks, Unknown) or not view.since("0.9.2"):
            return Unknown("the default depends on the machine's memory and ranks"), "V1 on a CPU"
        return (4096 if view.offline else 2048) * (
            ranks if view.since("0.10.0") else 1
        ), f"V1's default for {where}, CPU"
    if view.since("0.28.0") and view.machine.memory_gib >= _HUGE_GIB:
        return 16384, f"V1's default for a GPU with at least {_HUGE_GIB} GiB"
    if large(view):
        return (16384 if view.offline else 8192), f"V1's default for {where} on a GPU with at least {LARGE_GIB} GiB"
    return (8192 if view.offline else 2048), f"V1's default for {where} on {view.machine.name}"


RESOLUTION = ResolutionRule(
    "max_num_batched_tokens",
    (
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v1", _WORDS),
        Function(_ARGUMENTS, "EngineArgs._set_default_args", _WORDS),
        Function(_ARGUMENTS, "EngineArgs._set_default_max_num_seqs_and_batched_tokens_args", _WORDS),
        Function(_ARGUMENTS, "EngineArgs.get_batch_defaults", ("default_max_num_batched_tokens", "device_memory")),
        Function("vllm/config.py", "SchedulerConfig.__post_init__", _WORDS),
        Function("vllm/config/scheduler.py", "SchedulerConfig.__post_init__", _WORDS),
    ),
    apply,
)
