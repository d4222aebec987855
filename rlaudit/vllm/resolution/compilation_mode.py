"""torch.compile: not in V0, vLLM's own pipeline in V1 unless something takes it away.

A compiled model fuses operations and so rounds in other places. CUDA graphs are another thing: they record kernels and
change none. Eager mode turns both off.
"""

from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, number, part

NONE, COMPILED = "NONE", "VLLM_COMPILE"
_MODES = (NONE, "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", COMPILED)
_VLLM = "vllm/config/vllm.py"
_CPU = "vllm/platforms/cpu.py"
_CONFIG = "compilation_config"
# Models that carry no support for compilation; they break their CUDA graphs at attention instead, from 0.22.0 on.
_BREAKABLE = {
    "DeepseekV4ForCausalLM", "DeepSeekV4MTPModel", "InklingForCausalLM", "InklingForConditionalGeneration",
    "MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration",
}  # fmt: skip


def apply(view: Resolution) -> Resolved:
    """Return NONE, STOCK_TORCH_COMPILE, DYNAMO_TRACE_ONCE or VLLM_COMPILE: the names of 0.11.1 and later."""
    if view.is_v1 is None:
        return engine_unknown(view, "compilation")
    written = written_mode(view)
    eager = view.value("enforce_eager")
    if isinstance(eager, Unknown):
        return Resolved(eager, "enforce_eager decides")
    if not view.is_v1:
        return Resolved(NONE if written is None else written, "V0 compiles only when asked")
    if eager is True:
        return _of_eager(view, written)
    mode = _taken_away(view) or _in_force(view, written)
    return _on_cpu(view, mode) if view.machine.platform == "cpu" else mode


def written_mode(view: Resolution) -> Any:
    """Return the mode that compilation_config requests, as a name; None if it requests none."""
    given = view.given(_CONFIG)
    level = given if number(given) is not None else part(view, _CONFIG, "mode")
    level = part(view, _CONFIG, "level") if level is None else level
    if level is None or isinstance(level, Unknown):
        return level
    if number(level) is None:
        name = str(level).upper().removeprefix("COMPILATIONMODE.")
        return name if name in _MODES else Unknown(f"compilation mode {level} is not known")
    place = number(level) or 0
    return _MODES[place] if place < len(_MODES) else Unknown(f"compilation level {level} is not known")


def _of_eager(view: Resolution, written: Any) -> Resolved:
    if view.since("0.17.0") or written is None:
        return Resolved(NONE, "enforce_eager")
    return Resolved(written, f"{_CONFIG}, also with enforce_eager until 0.16")


def _taken_away(view: Resolution) -> Resolved | None:
    """Return the decision that turns compilation off even if the config requests it."""
    if view.since("0.20.0") and view.variable("TORCH_COMPILE_DISABLE") == "1":
        return Resolved(NONE, "TORCH_COMPILE_DISABLE=1 is set")
    broken = breaks_graphs(view)
    if isinstance(broken, Unknown):
        return Resolved(broken, "CUDA graphs that break at attention take the place of compilation")
    return Resolved(NONE, "VLLM_USE_BREAKABLE_CUDAGRAPH=1 is set") if broken else None


def breaks_graphs(view: Resolution) -> bool | Unknown:
    """Return whether CUDA graphs break at attention by themselves: compilation has not cut the model into pieces.

    From 0.22.0 on; VllmConfig._maybe_enable_breakable_cudagraph.
    """
    if not view.since("0.22.0"):
        return False
    variable = view.variable("VLLM_USE_BREAKABLE_CUDAGRAPH")
    if variable is not None:
        return variable if isinstance(variable, Unknown) else variable == "1"
    if set((view.checkpoint or {}).get("architectures") or ()) & _BREAKABLE:
        return Unknown("some releases break the graphs of this model instead of compiling it")
    if view.since("0.31.0") and view.variable("VLLM_BATCH_INVARIANT") == "1" and _has_tuned_products(view):
        return Unknown("with VLLM_BATCH_INVARIANT, the shapes of the model's layers decide")
    return False


def _has_tuned_products(view: Resolution) -> bool:
    """Return whether batch-invariant products are tuned by shape: those of bfloat16 are."""
    return view.machine.platform == "cuda" and view.value("dtype") not in ("float16", "half", "float32", "float")


def _on_cpu(view: Resolution, mode: Resolved) -> Resolved:
    """Return the mode on a CPU: the model as a whole, nothing with LoRA (CpuPlatform.check_and_update_config)."""
    if view.given("enable_lora") is True:
        return Resolved(NONE, "not compiled with LoRA on a CPU", at=_CPU)
    if mode.value == COMPILED:
        return Resolved("DYNAMO_TRACE_ONCE", "compiled as a whole on a CPU", at=_CPU)
    return mode


def _in_force(view: Resolution, written: Any) -> Resolved:
    if not view.since("0.10.1"):
        return Resolved(COMPILED, "V1 compiles under any config until 0.10.0")
    if written is not None:
        return Resolved(written, _CONFIG)
    if not view.since("0.12.0"):
        return Resolved(COMPILED, "V1 compiles by default")
    level = view.value("optimization_level")
    if isinstance(level, Unknown):
        return Resolved(level, "optimization_level decides")
    compiled = (number(str(level).removeprefix("O")) or 0) > 0
    return Resolved(COMPILED if compiled else NONE, f"optimization level {level}")


RESOLUTION = ResolutionRule(
    "compilation_mode",
    (
        *(
            Function(path, "VllmConfig.__post_init__", ("level", "mode"))
            for path in ("vllm/config.py", "vllm/config/__init__.py", _VLLM)
        ),
        Function(_VLLM, "VllmConfig._maybe_enable_breakable_cudagraph"),
        Function(_VLLM, "VllmConfig._uses_breakable_cudagraph_for_batch_invariance"),
        Function(_CPU, "CpuPlatform.check_and_update_config", ("level", "mode")),
    ),
    apply,
)
