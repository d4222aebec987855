"""Ends that send weights to an engine's workers: loaded by a trainer, and by the sender of an audit of updates.

Each is made, says where it is (`device`, `port`), meets the workers once, and then gives for every update first the
source that the workers are told (rlaudit_weight_sources.py), then the tensors. Pairs are (name, tensor).

Python 3.9 syntax; torch, and vLLM for its own transfer.
"""

import socket

from rlaudit_broadcast import HOST, Group, open_store, place
from rlaudit_weight_sources import described, share_tensors


def own_device(workers):
    """The first GPU that no worker computes on; one of theirs where there is none; the CPU without GPUs."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", workers if workers < torch.cuda.device_count() else 0)


class Broadcasts:
    """Every tensor by itself, over a group that both ends make of torch's parts."""

    def __init__(self, device, seconds):
        self.store, self.seconds, self.device = open_store(seconds), seconds, device
        self.port = self.store.port

    def meet(self, answer):
        """Wait for the workers."""
        self.group = Group(answer["backend"], self.store, 0, answer["size"], self.device, self.seconds)

    def source(self, pairs):
        """What is going to be sent, without holding it."""
        return {"from": "broadcast", "parameters": [described(name, tensor) for name, tensor in pairs]}

    def send(self, pairs):
        """One after the other; returns how many."""
        count = 0
        for _, tensor in pairs:
            self.group.send(tensor)
            count += 1
        return count

    def release(self):
        """Nothing is kept."""


class NativeBroadcasts(Broadcasts):
    """Every tensor by itself, over vLLM's own NCCL group, for the `nccl` backend of its weight transfer."""

    def __init__(self, device, seconds):
        self.device = device
        with socket.socket() as free:
            free.bind((HOST, 0))
            self.port = free.getsockname()[1]

    def meet(self, answer):
        """Wait for the workers."""
        import torch

        try:
            from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
            from vllm.distributed.utils import StatelessProcessGroup
        except ImportError as missing:
            raise RuntimeError("vLLM's own weight transfer wants vLLM at the sender's end as well: %s" % missing)
        torch.cuda.set_device(self.device)
        met = StatelessProcessGroup.create(host=HOST, port=self.port, rank=0, world_size=answer["size"])
        self.group = _NativeGroup(PyNcclCommunicator(met, device=self.device), self.device)

    def source(self, pairs):
        """vLLM's own words for the same."""
        parameters = super().source(pairs)["parameters"]
        return {
            "names": [name for name, _, _ in parameters],
            "dtype_names": [dtype for _, dtype, _ in parameters],
            "shapes": [shape for _, _, shape in parameters],
        }


class _NativeGroup:
    """Sends as Group does, over vLLM's communicator."""

    def __init__(self, communicator, device):
        self.communicator, self.device = communicator, device

    def send(self, tensor):
        import torch

        stream = torch.cuda.current_stream()
        self.communicator.broadcast(tensor.to(self.device).contiguous(), src=0, stream=stream)
        stream.synchronize()


class SharedMemory:
    """All tensors at once, in the memory of the workers' own GPUs."""

    port, shared = None, ()

    def __init__(self, device, seconds):
        self.device = device

    def meet(self, answer):
        """Find the workers' GPUs among those that are seen here."""
        import torch

        seen = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
        here = {place(device)["gpu"]: device for device in seen}
        self.gpus = {uuid: here[uuid] for uuid in answer["gpus"]}

    def source(self, pairs):
        """The handles; the copies are kept until they are released."""
        handles, self.shared = share_tensors(pairs, self.gpus)
        return {"from": "ipc", "handles": handles}

    def send(self, pairs):
        """Everything is there already."""
        return len(self.shared)

    def release(self):
        """The workers have read it."""
        self.shared = ()


SENDERS = {"broadcast": Broadcasts, "native": NativeBroadcasts, "ipc": SharedMemory}
