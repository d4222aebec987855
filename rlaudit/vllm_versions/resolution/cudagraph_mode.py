"""CUDA graphs: piecewise in V1 until 0.10, full for decode and piecewise for prefill from 0.11.0 on.

A captured graph pads the batch and picks kernels for the padded size; V0 captured whole decode steps without
torch.compile.
"""

from typing import Any

from rlaudit.rollout_config.node import Unknown
from rlaudit.vllm_versions.resolution_rule import Function, ResolutionRule, Resolved, View, engine_unknown, number, part

_CONFIG = "compilation_config"
_BY_LEVEL = {0: "NONE", 1: "PIECEWISE", 2: "FULL_AND_PIECEWISE", 3: "FULL_AND_PIECEWISE"}
_COMPILED = 3


def apply(view: View) -> Resolved:
    """NONE, PIECEWISE, FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE, or `V0 decode`."""
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
    return _written(view) or _default(view)


def _written(view: View) -> Resolved | None:  # noqa: PLR0911 - one line per decision
    mode = part(view, _CONFIG, "cudagraph_mode")
    if isinstance(mode, Unknown):
        return Resolved(mode, f"{_CONFIG} decides")
    if mode is not None:
        return Resolved(str(mode).upper().removeprefix("CUDAGRAPHMODE."), f"{_CONFIG}.cudagraph_mode")
    if not view.since("0.11.1"):
        if part(view, _CONFIG, "full_cuda_graph") is True:
            return Resolved("FULL", f"{_CONFIG}.full_cuda_graph")
        if part(view, _CONFIG, "use_cudagraph") is False:
            return Resolved("NONE", f"{_CONFIG}.use_cudagraph")
    level = _compile_level(view)
    if isinstance(level, Unknown):
        return Resolved(level, f"{_CONFIG} decides")
    if level is not None and level < _COMPILED:
        return Resolved("NONE", f"compilation level {level} captures no pieces")
    return None


def _compile_level(view: View) -> Any:
    given = view.given(_CONFIG)
    if number(given) is not None:
        return number(given)
    level = part(view, _CONFIG, "mode")
    level = part(view, _CONFIG, "level") if level is None else level
    if isinstance(level, str) and not level.isdigit():
        return {"NONE": 0, "STOCK_TORCH_COMPILE": 1, "DYNAMO_TRACE_ONCE": 2, "VLLM_COMPILE": 3}.get(level.upper())
    return level if isinstance(level, Unknown) else number(level)


def _default(view: View) -> Resolved:
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
