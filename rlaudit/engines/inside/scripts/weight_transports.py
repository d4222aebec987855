"""How new weights reach an engine's workers: from a folder, by a broadcast, or as an adapter.

A transport is opened after the engine has started, and returns its real kind: {"name", "backend", "because"}. For every
update it offers a source (extension/rlaudit_weight_transport.py), which the engine passes to its workers, and is
settled afterwards, or given up.

Loaded by the scripts that update weights. Python 3.9 syntax, standard library only.
"""

import asyncio
import importlib
import json
import os


def transport_of(job):
    """Return the transport of a job with checkpoints."""
    if job["path"] == "adapter":
        return Adapters(job["adapters"], job["drain_seconds"])
    kind = Disk if job.get("transport", "disk") == "disk" else Broadcast
    return kind(job["checkpoints"], job["drain_seconds"])


class Disk:
    """Workers read a checkpoint's folder. The interface of all transports; seconds: the longest wait of one end."""

    def __init__(self, checkpoints, seconds):
        self.checkpoints, self.seconds = checkpoints, seconds

    async def open(self, engine):
        """Nothing to open."""
        return {"name": "disk", "backend": None, "because": None}

    async def offer(self, version, step):
        """Return the folder of a version as a source; the step's skip: tensors whose names contain one are left out."""
        return {"from": "disk", "path": self.checkpoints[version], "skip": list(step.get("skip", ()))}

    async def settle(self):
        """Nothing to wait for: the workers have read all of it."""

    def give_up(self):
        """Nothing to end."""


class Adapters(Disk):
    """The engine reads an adapter's folder. What a request calls its adapter decides what the engine keeps of another.

    A step names the way: `new name` (and number) for each version, `new number` under one name, one name and number
    loaded again `in place`, or the `same` name and number for another folder.
    """

    # Cases of one engine must not share a number.
    ways = ("new name", "new number", "in place", "same")

    async def offer(self, version, step):
        """Return the adapter of a version as a source."""
        way = step["way"]
        first = 1 + 1000 * self.ways.index(way)
        adapter = {
            "name": "%s %s" % (way, version) if way == "new name" else way,
            "number": first + int(version) if way in ("new name", "new number") else first,
            "path": self.checkpoints[version],
        }
        return {"from": "adapter", "adapter": adapter, "in place": way == "in place"}


class Broadcast(Disk):
    """A thread of this process sends, as a trainer does, to workers that are other processes in V1."""

    engine = sender = sending = None

    async def open(self, engine):
        """Connect the sender with the workers."""
        self.engine, places = engine, await worker_places(engine)
        transport = importlib.import_module("rlaudit_weight_transport")
        self.sender = transport.Sender(transport.own_device(len(places)), self.seconds)
        own = {"place": transport.place(self.sender.device), "port": self.sender.port}
        ran = await meet(engine, own, places, self.start_meeting, self.seconds)
        await self.sending
        return ran

    def start_meeting(self, answer):
        """Let the sender wait for the workers."""
        self.sending = in_a_thread(self.sender.meet, answer)

    async def offer(self, version, step):
        """Make the sender send, and return its source."""
        if self.sender is None:
            await self.open(self.engine)
        tensors = importlib.import_module("rlaudit_weight_transport").checkpoint_tensors
        checkpoint = self.checkpoints[version], list(step.get("skip", ()))
        source = await in_a_thread(lambda: self.sender.source(tensors(*checkpoint)))
        self.sending = in_a_thread(self.sender.send, tensors(*checkpoint))
        return source

    async def settle(self):
        """Wait until everything was sent."""
        await self.sending

    def give_up(self):
        """Leave the sender, which may still be sending after a failed update. The next update gets a new one."""
        self.sender = None


def in_a_thread(function, *arguments):
    """Return the result of a call in another thread, to be awaited."""
    return asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def worker_places(engine):
    """Return the place of each worker; see rlaudit_weight_transport."""
    return [json.loads(place) for place in await engine.call("rlaudit_place")]


async def meet(engine, sender, places, answer, seconds):
    """Connect the sender with the workers, and return the kind of the transport.

    sender: its place and port. answer: the function that tells it the group to join.
    """
    transport = importlib.import_module("rlaudit_weight_transport")
    size = 1 + len(places)
    backend, because = transport.backend_between([sender["place"], *places])
    answer({"backend": backend, "size": size})
    nccl = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    await engine.call("rlaudit_join", backend, sender["port"], size, seconds, nccl)
    return {"name": "broadcast", "backend": backend, "because": because}
