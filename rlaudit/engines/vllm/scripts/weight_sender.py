"""The second process of an update: holds checkpoints and sends their tensors to an engine's workers, as a trainer does.

Started by weight_transports.py in the engine's own interpreter. A JSON line each way over its pipes; what is printed
goes to stderr.

    < {"transport", "checkpoints": {version: folder}, "workers", "seconds"}
    > {"place", "port"}                                        where this end is; the port at which it is found
    < {"backend", "size", "gpus"}                              the group to join, and the workers' GPUs
    > {"ready": true}
    < {"send": version, "skip", "late", "before": version}     see extension/rlaudit_weight_sources.py
    > {"source"}                                               what the workers are told; then the tensors are sent
    > {"sent": number of tensors}                              or {"error"} in place of either
    < {"release": true}                                        the workers have read what was shared; no answer

Python 3.9 syntax; torch and safetensors, and vLLM for its own transfer.
"""

import json
import os
import socket
import sys

from rlaudit_broadcast import HOST, Group, open_store, place
from rlaudit_weight_sources import described, planned, share_tensors


def own_device(workers):
    """The first GPU that no worker computes on; one of theirs where there is none; the CPU without GPUs."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", workers if workers < torch.cuda.device_count() else 0)


class Broadcasts:
    """Every tensor by itself, over a group that both ends make of torch's parts."""

    def __init__(self, job, device):
        self.store, self.seconds, self.device = open_store(job["seconds"]), job["seconds"], device
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


class NativeBroadcasts(Broadcasts):
    """Every tensor by itself, over vLLM's own NCCL group, for the `nccl` backend of its weight transfer."""

    def __init__(self, job, device):
        self.device = device
        with socket.socket() as free:
            free.bind((HOST, 0))
            self.port = free.getsockname()[1]

    def meet(self, answer):
        """Wait for the workers."""
        import torch
        from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
        from vllm.distributed.utils import StatelessProcessGroup

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

    def __init__(self, job, device):
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


SENDERS = {"broadcast": Broadcasts, "native": NativeBroadcasts, "ipc": SharedMemory}


def serve(hear, tell):
    """Answer until the pipe ends."""
    job = hear()
    sender = SENDERS[job["transport"]](job, own_device(job["workers"]))
    tell({"place": place(sender.device), "port": sender.port})
    sender.meet(hear())
    tell({"ready": True})
    while True:
        asked = hear()
        if "release" in asked:
            sender.shared = ()
            continue
        try:
            late = {"path": job["checkpoints"][asked["before"]], "parts": asked["late"]} if asked["late"] else None

            def pairs(folder=job["checkpoints"][asked["send"]], skip=asked["skip"], late=late):
                return planned(folder, skip, late)

            tell({"source": sender.source(pairs())})
            tell({"sent": sender.send(pairs())})
        except Exception as error:
            tell({"error": "%s: %s" % (type(error).__name__, error)})


def main():
    """Serve the process that started this one."""
    # Libraries print; the pipe is ours alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def hear():
        line = sys.stdin.readline()
        if not line:
            raise SystemExit(0)
        return json.loads(line)

    serve(hear, tell)


if __name__ == "__main__":
    main()
