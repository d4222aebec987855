"""How weights reach an engine's workers: read from a folder, or by a broadcast from the trainer's side.

A sender hands each worker a source:
    {"from": "disk", "path"}                    a checkpoint's folder
    {"from": "broadcast", "parameters"}         [[name, dtype, shape], ...] in the order in which they are sent
An audit of updates sends from a thread of the process that steers the engine (`Broadcast`); the trainer of a training
is another process, and that of the engine lets both ends meet (`meet`).

A broadcast has a process group of one sender and the workers, for weights alone. Rank 0 has the new weights and sends
them tensor by tensor; every worker receives each of them. Either end may have other process groups, so the backend is
made directly and no default group is touched. Over NCCL a tensor goes from GPU to GPU, over gloo through the host's
memory. Tensors are sent as bytes: gloo does not support every dtype.

Gloo of different torch releases are compatible (torch 2.6 to 2.13, tried on 2026-11-23); NCCL needs the same version at
both ends. Python 3.9 syntax; torch and safetensors only.
"""

import asyncio
import contextlib
import datetime
import json
import os
from collections.abc import Mapping

HOST = "127.0.0.1"
# What a folder comes over, in the words of `meet`.
FROM_DISK = {"name": "disk", "backend": None, "because": None}
# One worker is one process and belongs to one group.
_joined: "dict[str, object]" = {}


class Broadcast:
    """A thread of this process sends, as a trainer does, to workers that are other processes in V1.

    seconds: the longest wait of one end.
    """

    sender = None

    def __init__(self, seconds):
        self.seconds = seconds

    async def open(self, engine):
        """Connect the sender with the workers; return what weights come over."""
        places, meeting = await worker_places(engine), []
        self.sender = Sender(own_device(len(places)), self.seconds)
        own = {"place": place(self.sender.device), "port": self.sender.port}

        def answer(group):
            meeting.append(in_a_thread(self.sender.meet, group))

        ran = await meet(engine, own, places, answer, self.seconds)
        await meeting[0]
        return ran

    async def load(self, engine, folder):
        """Have the engine load a checkpoint, which the sender sends meanwhile."""
        if self.sender is None:
            await asyncio.wait_for(self.open(engine), self.seconds)
        sender = self.sender
        try:
            source = in_a_thread(lambda: sender.source(Checkpoint(folder).items()))
            source = await asyncio.wait_for(source, self.seconds)
            sending = in_a_thread(lambda: sender.send(Checkpoint(folder).items()))
            await asyncio.wait_for(engine.load(source), self.seconds)
            await asyncio.wait_for(sending, self.seconds)
        except BaseException:
            # It may be sending still. The next update gets a new one.
            self.sender = None
            raise


def in_a_thread(function, *arguments):
    """Return the result of a call in another thread, to be awaited."""
    return asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def worker_places(engine):
    """Return the place of each worker."""
    return [json.loads(answer) for answer in await engine.call("rlaudit_place")]


async def meet(engine, sender, places, answer, seconds):
    """Connect the sender with the workers; return what weights come over: {"name", "backend", "because": not NCCL}.

    sender: its place and port. answer: the function that tells it the group to join.
    """
    size = 1 + len(places)
    backend, because = backend_between([sender["place"], *places])
    answer({"backend": backend, "size": size})
    nccl = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    await engine.call("rlaudit_join", backend, sender["port"], size, seconds, nccl)
    return {"name": "broadcast", "backend": backend, "because": because}


def join(group):
    """Receive broadcasts from this group from now on."""
    _joined["group"] = group


def tensors_of(source, device):
    """Yield (name, tensor) from the source. Loaders may keep tensors for a while, so no buffer is reused."""
    if source["from"] == "disk":
        yield from Checkpoint(source["path"]).items()
    else:
        group = _joined["group"]
        for name, dtype, shape in source["parameters"]:
            yield name, group.receive(shape, dtype).to(device)


class Checkpoint(Mapping[str, object]):
    """The tensors of a folder's safetensors files by name, each read on access."""

    def __init__(self, path):
        from safetensors import safe_open

        files = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))
        if not files:
            raise ValueError("%s holds no safetensors" % path)
        stored = [safe_open(os.path.join(path, file), framework="pt") for file in files]
        self.files = {name: file for file in stored for name in file.keys()}

    def __getitem__(self, name):
        return self.files[name].get_tensor(name)

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)


def place(device):
    """Return the place of an end: {"gpu": UUID or None, "nccl": version or None}."""
    import torch

    if device.type != "cuda":
        return {"gpu": None, "nccl": None}
    version = ".".join(str(part) for part in torch.cuda.nccl.version())
    return {"gpu": str(torch.cuda.get_device_properties(device).uuid), "nccl": version}


def backend_between(places):
    """Return nccl or gloo for these ends, the sender's first, and why it is not nccl."""
    gpus = [end["gpu"] for end in places]
    versions = sorted({end["nccl"] for end in places if end["nccl"]})
    if any(gpu is None for gpu in gpus[1:]):
        return "gloo", "the engine is on a CPU"
    if gpus[0] is None:
        return "gloo", "the sender has no GPU"
    if len(set(gpus)) < len(gpus):
        return "gloo", "NCCL takes one process for each GPU, and the sender shares the engine's"
    if len(versions) > 1:
        return "gloo", "NCCL %s do not talk to each other" % " and ".join(versions)
    return "nccl", None


@contextlib.contextmanager
def nccl_variables(wanted):
    """Replace all NCCL_* variables by these within the context.

    VLLM_BATCH_INVARIANT sets ten of them for the engine's own groups, and both ends must have the same; PipelineRL's
    launcher drops them for that reason.
    """
    before = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    for name in before:
        del os.environ[name]
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name in wanted:
            del os.environ[name]
        os.environ.update(before)


def store_at(port, seconds):
    """Return one end of the store by which the ends find each other: the sender's at a free port if `port` is 0."""
    from torch.distributed import TCPStore

    return TCPStore(HOST, port, None, port == 0, datetime.timedelta(seconds=seconds), wait_for_workers=False)


class Group:
    """One end of the group. Its construction waits for all ends; `seconds` limits every wait."""

    def __init__(self, backend, store, rank, size, device, seconds):
        import torch
        from torch.distributed import PrefixStore

        store, limit = PrefixStore("rlaudit", store), datetime.timedelta(seconds=seconds)
        if backend == "nccl":
            from torch.distributed import ProcessGroupNCCL

            options = ProcessGroupNCCL.Options()
            options._timeout = limit
            self.device = device
            self.group = ProcessGroupNCCL(store, rank, size, options)
        else:
            from torch.distributed import ProcessGroupGloo

            options = ProcessGroupGloo._Options()
            options._devices = [ProcessGroupGloo.create_device(hostname=HOST)]
            options._timeout = limit
            self.device = torch.device("cpu")
            self.group = ProcessGroupGloo(store, rank, size, options)

    def send(self, tensor):
        """Send from rank 0; return when the tensor may change again."""
        self._broadcast(tensor.detach().to(self.device).contiguous())

    def receive(self, shape, dtype):
        """Return the next tensor at any other rank, on the device of the group."""
        import torch

        tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)
        self._broadcast(tensor)
        return tensor

    def _broadcast(self, tensor):
        import torch

        options = torch.distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = 0, 0
        self.group.broadcast([tensor.view(-1).view(torch.uint8)], options).wait()
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()


def own_device(workers):
    """Return the first GPU without a worker, else the first GPU, else the CPU."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", workers if workers < torch.cuda.device_count() else 0)


class Sender:
    """Sends tensors one by one to workers, which it meets once. Its `device` and `port` are sent to them before.

    For every update it returns the source that the workers get, and then sends the tensors. Pairs are (name, tensor).
    """

    def __init__(self, device, seconds):
        self.store, self.seconds, self.device = store_at(0, seconds), seconds, device
        self.port = self.store.port

    def meet(self, answer):
        """Wait for the workers."""
        self.group = Group(answer["backend"], self.store, 0, answer["size"], self.device, self.seconds)

    def source(self, pairs):
        """Return the source: the description of the tensors, without keeping them."""
        parameters = [[name, str(tensor.dtype).replace("torch.", ""), list(tensor.shape)] for name, tensor in pairs]
        return {"from": "broadcast", "parameters": parameters}

    def send(self, pairs):
        """Send the tensors one after the other."""
        for _, tensor in pairs:
            self.group.send(tensor)
