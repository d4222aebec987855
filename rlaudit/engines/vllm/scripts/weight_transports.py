"""How new weights reach an engine's workers: from a folder, or from a process beside the engine. Loaded by the scripts
that update weights.

A transport is opened once the engine is there, and tells then what it really is: {"name", "backend", "because"}. For
every update it offers a source (extension/rlaudit_weight_sources.py), which the engine hands to its workers, and is
settled afterwards.

Python 3.9 syntax, standard library only.
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys


def transport_of(job):
    """Return the transport of a job that names its checkpoints."""
    disk = job.get("transport", "disk") == "disk"
    return Disk(job["checkpoints"]) if disk else FromProcess(job)


class Disk:
    """Workers read a checkpoint's folder."""

    def __init__(self, checkpoints):
        self.checkpoints = checkpoints

    async def open(self, engine):
        """Nothing to open."""
        return {"name": "disk", "backend": None, "because": None}

    async def offer(self, version, skip):
        """Return the folder of a version, of which names with a part of `skip` are left out."""
        return {"from": "disk", "path": self.checkpoints[version], "skip": list(skip)}

    async def settle(self):
        """The workers have read all of it."""

    def give_up(self):
        """Nothing is on its way."""

    def close(self):
        """Nothing to close."""


class FromProcess:
    """A second process, weight_sender.py, in the engine's own interpreter."""

    def __init__(self, job):
        self.job = job
        self.process, self.engine = None, None

    async def open(self, engine):
        """Start the sender, and let it and the workers find each other."""
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
        end = await self.hear()
        ran = await meet(engine, end, places, self.say, self.job["drain_seconds"])
        await self.hear()
        return ran

    async def offer(self, version, skip):
        """Tell the sender to send, and return what it says it will."""
        if self.process is None:
            await self.open(self.engine)
        self.say({"send": version, "skip": list(skip)})
        return (await self.hear())["source"]

    async def settle(self):
        """Hear that everything was sent."""
        await self.hear()

    def say(self, message):
        """Send a line."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    async def hear(self):
        """Return the sender's next line; raises its error, or that it is gone."""
        line = await asyncio.get_running_loop().run_in_executor(None, self.process.stdout.readline)
        if not line:
            raise RuntimeError("the sender of the weights ended with code %s; see the log" % self.process.wait())
        message = json.loads(line)
        if "error" in message:
            raise RuntimeError("the sender of the weights: %s" % message["error"])
        return message

    def give_up(self):
        """End the sender: after a failed update something may still be on its way. The next begins with a new one."""
        self.close()

    def close(self):
        """End the sender."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


async def worker_places(engine):
    """Return where each worker computes; see rlaudit_broadcast."""
    return [json.loads(told) for told in await engine.call("rlaudit_place")]


async def meet(engine, end, places, answer, seconds):
    """Join the sender that says it is at `end` and the workers; returns what the transport is. `answer` tells the
    sender."""
    broadcast = importlib.import_module("rlaudit_broadcast")
    size = 1 + len(places)
    backend, because = broadcast.backend_between([end["place"], *places])
    answer({"backend": backend, "size": size})
    nccl = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    await engine.call("rlaudit_join", backend, end["port"], size, seconds, nccl)
    return {"name": "broadcast", "backend": backend, "because": because}
