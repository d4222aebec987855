"""CUDA graphs: steps that were captured once and are replayed, with the batch padded to a captured size.

Another size can mean another kernel for a matrix product, and other sums. torch.compile is not changed. `enforce-eager`
turns both off together; `rlaudit explain compile` says how to tell them apart. A CPU has no graphs. 0.8.5 and 0.9.0
capture at either level; their V0 compiles nothing, so that enforce-eager is the factor for its graphs. How each release
is configured: rlaudit/engines/inside/execution.py. Source: vllm/config/compilation.py (CUDAGraphMode, since 0.10.1),
vLLM issues 55238 and 55944.
"""

from dataclasses import replace

from rlaudit.laboratory.factor import ArmTrace, Factor, Move, Observation
from rlaudit.laboratory.factors.compile import PIECEWISE
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` captures as the release does by default, `off` nothing."""
    return replace(treatment, captures_graphs=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the worker's count of batches in a graph, else from its mode or the loaded configuration."""
    resolved = trace.resolved
    if resolved.get("device") != "cuda":
        return Observation("off", f"there are no CUDA graphs on device {resolved.get('device')}")
    in_worker = trace.loaded.get("features", {}).get("cudagraph_mode")
    counted = (trace.loaded.get("ran") or {}).get("graphs")
    if counted and in_worker != "NONE":
        batches, replayed = sum(counted.values()), sum(counted.values()) - counted.get("NONE", 0)
        because = f"{replayed} of {batches} batches ran in a captured graph (cudagraph_mode={in_worker})"
        return Observation("on" if replayed else None, because)
    if in_worker is not None:
        return Observation(
            "off" if in_worker == "NONE" else "on", f"resolved in the worker: cudagraph_mode={in_worker}"
        )
    if resolved["engine"] == "V0":
        eager = resolved["enforce_eager"]
        return Observation("off" if eager else "on", f"V0 captures decode steps; enforce_eager={eager}")
    mode = resolved.get("cudagraph_mode")
    if mode is not None:
        return Observation("off" if mode == "NONE" else "on", f"loaded configuration: cudagraph_mode={mode}")
    captures, level = resolved.get("use_cudagraph"), resolved.get("compilation_mode")
    because = f"loaded configuration: use_cudagraph={captures}, compilation mode {level}"
    return Observation("on" if captures and level in PIECEWISE else "off", because)


def move(audit: Audit, setting: str) -> Move:
    """Try off, unless nothing is captured anyway."""
    return Move("on" if audit.after.value(setting) == "NONE" else "off")


FACTOR = Factor(
    name="cudagraphs",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="cudagraph_mode",
    move=move,
)
