"""Plays the steps of a weight-update job on one engine and keeps what was seen. Loaded by update_weights.py, which
documents the steps.

Python 3.9 syntax, standard library only.
"""

import asyncio
import os
import time

LATE_SECONDS = 0.05
# Calls that have nothing to wait for; a pause with mode=wait and a load may take the job's drain_seconds.
CONTROL_SECONDS = 20.0
MODES = ("none", "keep", "wait", "abort")


class Session:
    """One engine, the weights it is believed to hold, and everything that was seen."""

    def __init__(self, job, engine, transport, channel, request_in_flight, engine_processes):
        """The last two are the modules of those names."""
        self.job, self.engine, self.transport, self.channel = job, engine, transport, channel
        self.request_in_flight, self.engine_processes = request_in_flight, engine_processes
        self.version, self.broken, self.paused = "0", False, False
        self.rows, self.updates, self.read_backs, self.said, self.seconds = [], [], [], [], {}
        self.case, self.flights, self.windows = None, [], []

    async def play(self, case):
        """Run the steps of one case; what goes wrong is kept, and the case ends there."""
        self.case, self.flights, self.windows = case["name"], [], []
        begun = time.monotonic()
        self.channel.emit("progress", done=len(self.seconds), total=len(self.job["cases"]))
        for step in case["steps"]:
            if self.broken and step["do"] in ("submit", "advance"):
                self.say(step["do"], "not run", "nothing may be sampled after a failed update")
                continue
            try:
                await getattr(self, "do_" + step["do"])(step)
            except self.channel.Unsupported as refusal:
                self.say(step["do"], "unsupported", str(refusal))
                break
            except Exception as error:
                self.say(step["do"], "failed", self.request_in_flight.describe_error(error), did_not_return(error))
                if step["do"] == "update":
                    await self.give_up()
                if not case.get("go_on"):
                    break
        await self.drain()
        self.rows.extend(flight.row(self) for flight in self.flights)
        self.seconds[self.case] = time.monotonic() - begun

    def say(self, step, status, message, timed_out=False):
        """Keep what a step came to."""
        told = {"case": self.case, "step": step, "status": status, "message": message, "timed_out": timed_out}
        self.said.append(told)

    async def do_restore(self, step):
        """Version 0 again, with nothing cached. Not measured, but it must work for a case to mean anything."""
        if self.version != "0" or self.broken:
            await self.load("0")
        self.broken = False
        if self.paused:
            # A case before this one ended with its update.
            await self.do_resume(step)
        await self.do_reset_prefix_cache(step)

    async def load(self, version, skip=(), late=()):
        """Load a checkpoint within the time that anything may take."""
        seconds = self.job["drain_seconds"]
        try:
            source = await asyncio.wait_for(self.transport.offer(version, skip, late, self.version), seconds)
            await asyncio.wait_for(self.engine.load(source, version), seconds)
            await asyncio.wait_for(self.transport.settle(), seconds)
        except BaseException:
            self.transport.give_up()
            raise
        # A broken checkpoint is meant to be version 1.
        self.version = version if version.isdigit() else "1"

    async def do_reset_prefix_cache(self, step):
        """Empty the prefix cache; raises where the engine says that it did not."""
        done = await asyncio.wait_for(self.engine.reset_prefix_cache(), CONTROL_SECONDS)
        if done is False:
            raise RuntimeError("the prefix cache was not reset: blocks are in use")

    async def do_submit(self, step):
        """Submit requests and wait for them."""
        await self.advanced(self.submit(step), step.get("until"))

    async def do_advance(self, step):
        """Wait for more tokens of requests in flight."""
        await self.advanced([flight for flight in self.flights if flight.run == step["run"]], step["until"])

    async def do_settle(self, step):
        """Wait for every request."""
        await self.advanced(self.flights, None)

    async def advanced(self, flights, until):
        """Wait until each of the flights has `until` tokens or has ended; raises when that takes too long."""
        limit = time.monotonic() + self.job["drain_seconds"]
        while not all(flight.ended or (until and len(flight.token_ids) >= until) for flight in flights):
            if time.monotonic() > limit:
                raise RuntimeError("requests do not advance")
            await asyncio.sleep(0.002)

    def submit(self, step):
        """Start the requests of a step."""
        flights = [self.request_in_flight.Flight(self, step, request) for request in step["requests"]]
        self.flights.extend(flights)
        return flights

    async def do_pause(self, step):
        """Pause as the step says; raises Unsupported where the release cannot."""
        mode, clear = step["mode"], step["clear_cache"]
        if not self.engine.can_pause(mode, clear):
            others = [other for other in MODES if self.engine.can_pause(other, clear)]
            raise self.channel.Unsupported(
                "no pause with mode=%s, clear_cache=%s in this vLLM%s"
                % (mode, clear, "; it takes mode=%s" % "|".join(others) if others else "")
            )
        self.paused = True
        await asyncio.wait_for(self.engine.pause(mode, clear), self.job["drain_seconds"])

    async def do_resume(self, step):
        """Go on sampling."""
        await asyncio.wait_for(self.engine.resume(), CONTROL_SECONDS)
        self.paused = False

    async def do_update(self, step):
        """Pause, load, resume, with the times that tell before from after. A failed load is never resumed from."""
        now, mode = time.monotonic, step["mode"]
        update = {"case": self.case, "from": self.version, "to": step["version"], "mode": mode, "error": None}
        planted = {name: list(step.get(name, ())) for name in ("skip", "late")}
        update.update(clear_cache=step["clear_cache"], **planted)
        update["in_flight"] = sum(not flight.ended for flight in self.flights)
        begun = now()
        if mode != "none":
            await self.do_pause(step)
        paused = now()
        update["pause_seconds"] = paused - begun
        if mode != "none":
            self.submit_all(step["while_paused"])
        self.updates.append(update)
        try:
            await self.load(step["version"], **planted)
        except Exception as error:
            update["error"] = self.request_in_flight.describe_error(error)
            self.broken = True
            raise
        finally:
            update["load_seconds"] = now() - paused
        loaded = now()
        # Without a pause, outputs of the last step under the old weights may still be on their way.
        self.windows.append((paused, loaded + (LATE_SECONDS if mode == "none" else 0.0), self.version))
        if mode == "none":
            await asyncio.sleep(LATE_SECONDS)
            self.submit_all(step["while_paused"])
        else:
            await self.do_resume(step)
        update["resume_seconds"] = now() - loaded

    def submit_all(self, steps):
        """Start the requests of several steps."""
        for step in steps:
            self.submit(step)

    async def give_up(self):
        """Abort what is in flight: after a failed update nothing may be sampled any more."""
        for flight in self.flights:
            if not flight.ended:
                flight.error = flight.error or "given up after the update failed"
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in self.flights), return_exceptions=True)

    async def do_read_back(self, step):
        """Compare what the worker holds with this version and those before it."""
        known = [version for version in self.job["checkpoints"] if version.isdigit()]
        versions = [version for version in known if int(version) <= int(self.version)] if int(self.version) else known
        folders = [self.job["checkpoints"][version] for version in versions]
        told = await asyncio.wait_for(self.engine.read_back(folders), self.job["drain_seconds"])
        for parameter in told["parameters"].values():
            for way in ("bytes", "probe"):
                parameter[way] = None if parameter[way] is None else versions[parameter[way]]
            parts = parameter.get("parts") or {}
            parameter["parts"] = {name: None if held is None else versions[held] for name, held in parts.items()}
        told["logits"] = None if told["logits"] is None else versions[told["logits"]]
        self.read_backs.append({"case": self.case, "believed": None if self.broken else self.version, **told})

    async def do_health(self, step):
        """Whether the engine calls itself healthy. With `watch` it is asked again for that many seconds: a front end
        notices the death of its engine in its own time."""
        begun = time.monotonic()
        while True:
            try:
                await asyncio.wait_for(self.engine.check_health(), CONTROL_SECONDS)
            except Exception as error:
                after = time.monotonic() - begun
                told = self.request_in_flight.describe_error(error)
                said = "check_health() raised after %.1f s: %s" % (after, told)
                self.say("health", "failed", said, did_not_return(error))
                return
            if time.monotonic() - begun >= step.get("watch", 0):
                break
            await asyncio.sleep(0.05)
        asked = " in %.0f s" % step["watch"] if step.get("watch") else ""
        self.say("health", "ok", "check_health() raised nothing" + asked)

    async def do_kill(self, step):
        """End every process of the engine, as the kernel does when memory runs out."""
        self.say("kill", "ok", "%d processes of the engine ended" % self.engine_processes.kill_below(os.getpid()))

    async def drain(self):
        """Wait for what is still under way; what does not end in time is lost."""
        open_tasks = [flight.task for flight in self.flights if not flight.task.done()]
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=self.job["drain_seconds"])
        for flight in self.flights:
            if not flight.task.done():
                flight.lost = True
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in self.flights), return_exceptions=True)


def did_not_return(error):
    """Whether patience with a call ended; asyncio's error is not the built-in one before Python 3.11."""
    return type(error).__name__ == "TimeoutError"
