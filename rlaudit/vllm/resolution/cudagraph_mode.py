"""CUDA graphs: piecewise in V1 until 0.10, full for decode and piecewise for prefill from 0.11.0 on.

A captured graph pads the batch and picks kernels for the padded size; V0 captured whole decode steps without
torch.compile. The requested mode does not always run: pieces need a compiled model (vllm/config/vllm.py), and whole
steps a backend that can be captured, which a worker finds out (0.11.0 to 0.25:
GPUModelRunner._check_and_update_cudagraph_mode; later vllm/config/compilation.py,
CompilationConfig.resolve_cudagraph_mode_and_sizes).
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolution.compilation_mode import COMPILED, breaks_graphs
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, number, part

_CONFIG = "compilation_config"
_BY_LEVEL = {0: "NONE", 1: "PIECEWISE", 2: "FULL_AND_PIECEWISE", 3: "FULL_AND_PIECEWISE"}
_IN_PIECES = {"PIECEWISE": "NONE", "FULL_AND_PIECEWISE": "FULL_DECODE_ONLY"}
_DECODE_IS_FULL = ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_HOPPER = 90


def apply(view: Resolution) -> Resolved:  # noqa: PLR0911 - one line per decision
    """Return NONE, PIECEWISE, FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE, or `V0 decode`."""
    if view.machine.platform == "cpu":
        return Resolved("NONE", "there are no CUDA graphs on a CPU", overrules=True)
    eager = view.value("enforce_eager")
    if eager is True:
        return Resolved("NONE", "enforce_eager", overrules=True)
    if isinstance(eager, Unknown):
        return Resolved(eager, "enforce_eager decides")
    if view.is_v1 is None:
        return engine_unknown(view, "CUDA graphs")
    if not view.is_v1:
        return Resolved("V0 decode", "V0 captures decode steps up to max_seq_len_to_capture")
    mode = _written(view) or _default(view)
    for limit in (_without_pieces, _by_backend):
        if isinstance(mode.value, Unknown):
            return mode
        mode = limit(view, mode.value) or mode
    return mode


def _written(view: Resolution) -> Resolved | None:
    mode = part(view, _CONFIG, "cudagraph_mode")
    if isinstance(mode, Unknown):
        return Resolved(mode, f"{_CONFIG} decides")
    if mode is not None:
        return Resolved(str(mode).upper().removeprefix("CUDAGRAPHMODE."), f"{_CONFIG}.cudagraph_mode")
    if not view.since("0.11.1"):
        if part(view, _CONFIG, "full_cuda_graph") is True:
            return Resolved("FULL", f"{_CONFIG}.full_cuda_graph")
        if part(view, _CONFIG, "use_cudagraph") is False and view.since("0.9.1"):
            return Resolved("NONE", f"{_CONFIG}.use_cudagraph")
    return None


def _default(view: Resolution) -> Resolved:
    if not view.since("0.11.0"):
        return Resolved("PIECEWISE", "V1's default until 0.10")
    if not view.since("0.12.0"):
        return Resolved("FULL_AND_PIECEWISE", "V1's default from 0.11.0 on")
    level = view.value("optimization_level")
    if isinstance(level, Unknown):
        return Resolved(level, "optimization_level decides")
    mode = _BY_LEVEL.get(number(str(level).removeprefix("O")) or 0)
    if mode is None:
        return Resolved(Unknown(f"optimization_level {level} is not known"), "by optimization_level")
    return Resolved(mode, f"optimization level {level}")


def _without_pieces(view: Resolution, mode: str) -> Resolved | None:
    """Return the rest of a mode if the model is not compiled, and so not cut into pieces."""
    if mode not in _IN_PIECES and not (mode in _DECODE_IS_FULL and view.since("0.12.0") and not view.since("0.13.0")):
        return None
    if breaks_graphs(view) is not False:
        return None
    compiled = view.value("compilation_mode")
    if isinstance(compiled, Unknown):
        return Resolved(compiled, "captured in pieces where the model is compiled")
    if compiled == COMPILED:
        return None
    kept = _IN_PIECES[mode] if view.since("0.30.0") else "NONE"
    return Resolved(kept, f"compilation mode {compiled} captures no pieces")


def _by_backend(view: Resolution, mode: str) -> Resolved | None:
    """Return the mode that a worker takes, which knows the steps in which its attention backend can be captured."""
    if mode not in _DECODE_IS_FULL or not view.since("0.11.0"):
        return None
    backend, pieces = view.value("attention_backend"), view.value("compilation_mode") == COMPILED
    if backend == "FLEX_ATTENTION" and not view.since("0.20.0"):
        return Resolved("PIECEWISE" if pieces else "NONE", "FLEX_ATTENTION cannot be captured until 0.19")
    third_flash_attention = backend == "FLASH_ATTN" and view.machine.capability == _HOPPER
    if mode != "FULL" or backend in ("TRITON_ATTN", "FLEX_ATTENTION") or third_flash_attention:
        return None
    if backend not in ("FLASH_ATTN", "FLASHINFER"):
        named = f"is open: {backend.reason}" if isinstance(backend, Unknown) else str(backend)
        return Resolved(
            Unknown(f"it is not known whether prefill can be captured with attention backend {named}"), "by backend"
        )
    kept = "FULL_AND_PIECEWISE" if pieces else "FULL_DECODE_ONLY"
    return Resolved(kept, f"{backend} on {view.machine.name} can be captured in decode steps only")


RESOLUTION = ResolutionRule(
    "cudagraph_mode",
    (
        *(
            Function(path, "VllmConfig.__post_init__", ("cudagraph_mode", "use_cudagraph"))
            for path in ("vllm/config.py", "vllm/config/__init__.py", "vllm/config/vllm.py")
        ),
        *(Function("vllm/config/vllm.py", f"OPTIMIZATION_LEVEL_0{level}", ("cudagraph_mode",)) for level in range(4)),
    ),
    apply,
)
