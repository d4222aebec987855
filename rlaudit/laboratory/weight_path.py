"""How new weights reach an engine, in two steps: a transport brings tensors to its workers, and a path loads them.

Transports: a folder that every worker reads (disk); a broadcast, parameter by parameter, over NCCL or gloo. The
engine's process reports which one really ran, and over what (rlaudit_weight_transport.py). Not covered: CUDA IPC, and
vLLM's own NCCL sender.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

WeightPath = Literal["reload_weights", "reload_from_iterator", "load_weights"]
# How successive adapters are called.
AdapterWay = Literal["new name", "new number", "in place", "same"]
ADAPTER = "adapter"
# The model with the new adapter, as the trainer has it.
MERGED = "adapter-1"
Transport = Literal["disk", "broadcast"]

BRINGS = {
    "disk": "read from disk",
    "broadcast": "broadcast, parameter by parameter, over {backend}",
}
SPELT = {"nccl": "NCCL"}
LOADS = {
    "reload_weights": "loaded by the engine's reload_weights, which finds the files itself",
    "reload_from_iterator": "given to the engine's reload_weights as tensors",
    "load_weights": "given to model.load_weights",
    ADAPTER: "named by each request as its adapter",
}


def check_path(path: WeightPath | None, transport: Transport) -> None:
    """Raise ValueError if the path cannot load what the transport brings."""
    if path == "reload_weights" and transport != "disk":
        raise ValueError(
            f"reload_weights reads a folder, which transport: {transport} does not bring; "
            "write path: reload_from_iterator, or leave the path out"
        )


def loading_path(path: WeightPath | None, transport: Transport, kind: str | None, device: str) -> WeightPath:
    """Return the requested path, else the usual one for this transport, engine (V0 or V1) and device."""
    if path is not None:
        return path
    if kind == "V0":
        return "load_weights"
    if transport == "disk":
        return "reload_weights"
    # CPU builds compute with packed copies of the weights, which only a reload makes again.
    return "load_weights" if device == "cuda" else "reload_from_iterator"


def came_over_nccl(transports: Iterable[Mapping[str, Any] | None]) -> bool:
    """Return whether weights came over NCCL in any of these transports, which engines report."""
    return any((transport or {}).get("backend") == "nccl" for transport in transports)


def in_words(path: str, transport: Mapping[str, Any] | None) -> str:
    """Return what brought the weights and what loaded them. transport: as the engine reports it."""
    ran = transport or {"name": "disk", "backend": None, "because": None}
    why = f", not NCCL: {ran['because']}" if ran["because"] else ""
    brought = BRINGS[ran["name"]].format(backend=SPELT.get(ran["backend"], ran["backend"]))
    return f"{brought}{why}; {LOADS[path]}"
