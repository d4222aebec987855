"""How new weights reach an engine, in two steps: a transport brings tensors to its workers, and a path loads them.

Transports: a folder that every worker reads (disk); a second process that sends parameter by parameter, over NCCL or
gloo (broadcast); that process's GPU memory (ipc, CUDA only); the release's own weight transfer over NCCL (native, CUDA
only). Which one really ran, and over what, the engine's process says (engines/vllm/scripts/weight_transports.py).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

WeightPath = Literal["reload_weights", "reload_from_iterator", "load_weights", "weight_transfer"]
Transport = Literal["disk", "broadcast", "ipc", "native"]
PauseMode = Literal["none", "keep", "wait", "abort"]

BRINGS = {
    "disk": "read from disk",
    "broadcast": "broadcast by a second process, parameter by parameter, over {backend}",
    "ipc": "shared by a second process in GPU memory (CUDA IPC)",
    "native": "sent by a second process over vLLM's own weight transfer ({backend})",
}
SPELT = {"nccl": "NCCL"}
ON_GPUS = {"nccl": "NCCL", "cuda": "CUDA IPC"}
LOADS = {
    "reload_weights": "loaded by the engine's reload_weights, which finds the files itself",
    "reload_from_iterator": "given to the engine's reload_weights as tensors",
    "load_weights": "given to model.load_weights",
    "weight_transfer": "loaded by the course of the engine's weight-transfer API",
}


# Told before an engine is started.
WITHOUT_GPU = {
    "ipc": "CUDA IPC shares the memory of a GPU, and these engines compute on a CPU",
    "native": "the weight transfer of vLLM itself goes over NCCL, and these engines compute on a CPU; "
    "transport: broadcast with path: weight_transfer runs its course over gloo",
}


def refusal(transport: str, device: str) -> str | None:
    """Why engines on cuda or cpu cannot be brought weights this way; None where they can."""
    return f"transport {transport}: {WITHOUT_GPU[transport]}" if device == "cpu" and transport in WITHOUT_GPU else None


def check_path(path: WeightPath | None, transport: Transport) -> None:
    """Raise ValueError where the path cannot load what the transport brings."""
    if path == "reload_weights" and transport != "disk":
        raise ValueError(
            f"reload_weights reads a folder, which transport: {transport} does not bring; "
            "write path: reload_from_iterator, or leave the path out"
        )
    if transport == "native" and path not in (None, "weight_transfer"):
        raise ValueError(f"transport: native is the engine's own weight transfer, and path: {path} is not")


def loading_path(path: WeightPath | None, transport: Transport, kind: str | None, device: str) -> WeightPath:
    """The path that was asked for, else the usual one for this transport, engine (V0 or V1) and device."""
    if path is not None:
        return path
    if transport == "native":
        return "weight_transfer"
    if kind == "V0":
        return "load_weights"
    if transport == "disk":
        return "reload_weights"
    # CPU builds compute with packed copies of the weights, which only a reload makes again.
    return "load_weights" if device == "cuda" else "reload_from_iterator"


def unseen_backends(ran: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """What weights can come over on GPUs and did not here; `ran` are the engines' words on their transports."""
    seen = {(told or {}).get("backend") for told in ran}
    return [name for backend, name in ON_GPUS.items() if backend not in seen]


def in_words(path: str, ran: Mapping[str, Any] | None) -> str:
    """What brought the weights and what loaded them, as it ran; `ran` is the engine's word on its transport."""
    told = ran or {"name": "disk", "backend": None, "because": None}
    why = f", not NCCL: {told['because']}" if told["because"] else ""
    brought = BRINGS[told["name"]].format(backend=SPELT.get(told["backend"], told["backend"]))
    return f"{brought}{why}; {LOADS[path]}"
