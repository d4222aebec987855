"""How new weights reach an engine's workers: from a folder, from another process, or as an adapter.

A transport is opened after the engine has started, and returns its real kind: {"name", "backend", "because"}. For every
update it offers a source (extension/rlaudit_weight_sources.py), which the engine passes to its workers, and is settled
afterwards.

Loaded by the scripts that update weights. Python 3.9 syntax, standard library only.
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys


def transport_of(job):
    """Return the transport of a job with checkpoints."""
    if job["path"] == "adapter":
        return Adapters(job["adapters"])
    disk = job.get("transport", "disk") == "disk"
    return Disk(job["checkpoints"]) if disk else FromProcess(job)


class Disk:
    """Workers read a checkpoint's folder."""

    def __init__(self, checkpoints):
        self.checkpoints = checkpoints

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

    def close(self):
        """Nothing to close."""


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


class FromProcess:
    """A second process, weight_sender.py, in the engine's interpreter."""

    def __init__(self, job):
        self.job = job
        self.process, self.engine = None, None

    async def open(self, engine):
        """Start the sender, and connect it with the workers."""
        self.engine = engine
        places = await worker_places(engine)
        folder = os.path.dirname(os.path.abspath(__file__))
        self.process = subprocess.Popen(
            [sys.executable, "-s", os.path.join(folder, "weight_sender.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        job = {"checkpoints": self.job["checkpoints"], "workers": len(places)}
        self.say(dict(job, seconds=self.job["drain_seconds"]))
        ran = await meet(engine, await self.hear(), places, self.say, self.job["drain_seconds"])
        await self.hear()
        return ran

    async def offer(self, version, step):
        """Make the sender send, and return its source."""
        if self.process is None:
            await self.open(self.engine)
        self.say({"send": version, "skip": list(step.get("skip", ()))})
        return (await self.hear())["source"]

    async def settle(self):
        """Wait until everything was sent."""
        await self.hear()

    def say(self, message):
        """Send a line."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    async def hear(self):
        """Return the sender's next message. Raises RuntimeError if it is an error, or if the sender has ended."""
        line = await asyncio.get_running_loop().run_in_executor(None, self.process.stdout.readline)
        if not line:
            raise RuntimeError("the sender of the weights ended with code %s; see the log" % self.process.wait())
        message = json.loads(line)
        if "error" in message:
            raise RuntimeError("the sender of the weights: %s" % message["error"])
        return message

    def give_up(self):
        """End the sender, which may still be sending after a failed update. The next update starts a new one."""
        self.close()

    def close(self):
        """End the sender."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


async def worker_places(engine):
    """Return the place of each worker; see rlaudit_broadcast."""
    return [json.loads(place) for place in await engine.call("rlaudit_place")]


async def meet(engine, sender, places, answer, seconds):
    """Connect the sender with the workers, and return the kind of the transport.

    sender: its first message. answer: the function that sends it a message.
    """
    broadcast = importlib.import_module("rlaudit_broadcast")
    size = 1 + len(places)
    backend, because = broadcast.backend_between([sender["place"], *places])
    answer({"backend": backend, "size": size})
    nccl = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    await engine.call("rlaudit_join", backend, sender["port"], size, seconds, nccl)
    return {"name": "broadcast", "backend": backend, "because": because}
