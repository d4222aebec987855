"""Plays the steps of a weight-update job on one engine, and records which weights sampled each token.

Loaded by update_weights.py, which documents the steps. Python 3.9 syntax, standard library only.
"""

import asyncio
import json
import time

LATE_SECONDS = 0.05
# The limit of calls that do not wait for requests; a pause with mode=wait and a load may take the job's drain_seconds.
CONTROL_SECONDS = 20.0
MODES = ("none", "keep", "wait", "abort")


class Session:
    """One engine, and the record of everything that it did."""

    def __init__(self, job, engine, transport, channel):
        self.job, self.engine, self.transport, self.channel = job, engine, transport, channel
        # The weights that the engine should hold; None after a failed update.
        self.version, self.paused = "0", False
        self.rows, self.updates, self.read_backs, self.steps, self.seconds = [], [], [], [], {}
        self.case, self.flights, self.windows = None, [], []

    async def play(self, case):
        """Run the steps of one case up to its first failure, which is recorded."""
        self.case, self.flights, self.windows = case["name"], [], []
        begun = time.monotonic()
        self.channel.emit("progress", done=len(self.seconds), total=len(self.job["cases"]))
        for step in case["steps"]:
            try:
                await getattr(self, "do_" + step["do"])(step)
            except self.channel.Unsupported as refusal:
                self.say(step["do"], "unsupported", str(refusal))
                break
            except Exception as error:
                self.say(step["do"], "failed", describe_error(error))
                if step["do"] == "update":
                    await self.give_up()
                break
        await self.drain()
        self.rows.extend(flight.row(self) for flight in self.flights)
        self.seconds[self.case] = time.monotonic() - begun

    def say(self, step, status, message):
        """Record the end of a step."""
        self.steps.append({"case": self.case, "step": step, "status": status, "message": message})

    async def do_restore(self, step):
        """Load version 0 again, with an empty cache. It is not measured, but a case needs it to mean anything."""
        if self.version != "0" or "way" in step:
            await self.load("0", step)
        if self.paused:
            # The previous case ended in its update.
            await self.resume()
        await self.do_reset_prefix_cache(step)

    async def load(self, version, step):
        """Load a checkpoint within drain_seconds, in the way of the step."""
        seconds = self.job["drain_seconds"]
        try:
            source = await asyncio.wait_for(self.transport.offer(version, step), seconds)
            await asyncio.wait_for(self.engine.load(source), seconds)
            await asyncio.wait_for(self.transport.settle(), seconds)
        except BaseException:
            self.transport.give_up()
            self.version = None
            raise
        self.version = version

    async def do_reset_prefix_cache(self, step):
        """Empty the prefix cache. Raises RuntimeError if the engine reports that it did not."""
        done = await asyncio.wait_for(self.engine.reset_prefix_cache(), CONTROL_SECONDS)
        if done is False:
            raise RuntimeError("the prefix cache was not reset: blocks are in use")

    async def do_submit(self, step):
        """Submit requests and wait for them. Raises Unsupported if they have a salt and the release knows none."""
        steerable_engine = self.channel.neighbour("steerable_engine")
        if step.get("salt") is not None and not steerable_engine.takes_salts(self.engine.kind):
            raise self.channel.Unsupported("no cache_salt in this vLLM (it came with 0.9.0, in V1)")
        await self.wait_for_tokens(self.submit(step), step.get("until"))

    async def do_settle(self, step):
        """Wait for every request."""
        await self.wait_for_tokens(self.flights, None)

    async def wait_for_tokens(self, flights, until):
        """Wait until each of the flights has `until` tokens or has ended. Raises RuntimeError after drain_seconds."""
        limit = time.monotonic() + self.job["drain_seconds"]
        while not all(flight.ended or (until and len(flight.token_ids) >= until) for flight in flights):
            if time.monotonic() > limit:
                raise RuntimeError("requests do not advance")
            await asyncio.sleep(0.002)

    def submit(self, step):
        """Start the requests of a step."""
        flights = [Flight(self, step, request) for request in step["requests"]]
        self.flights.extend(flights)
        return flights

    async def pause(self, mode, clear):
        """Pause. Raises Unsupported if the release cannot."""
        if not self.engine.can_pause(mode, clear):
            others = [other for other in MODES if self.engine.can_pause(other, clear)]
            raise self.channel.Unsupported(
                "no pause with mode=%s, clear_cache=%s in this vLLM%s"
                % (mode, clear, "; it takes mode=%s" % "|".join(others) if others else "")
            )
        self.paused = True
        await asyncio.wait_for(self.engine.pause(mode, clear), self.job["drain_seconds"])

    async def resume(self):
        """Go on sampling."""
        await asyncio.wait_for(self.engine.resume(), CONTROL_SECONDS)
        self.paused = False

    async def do_update(self, step):
        """Pause, load, resume, and record the times before and after. After a failed load it stays paused."""
        mode, in_flight = step["mode"], sum(not flight.ended for flight in self.flights)
        if mode != "none":
            await self.pause(mode, step["clear_cache"])
        paused = time.monotonic()
        if mode != "none":
            self.submit_all(step["while_paused"])
        update = {"case": self.case, "to": step["version"], "in_flight": in_flight, "error": None}
        self.updates.append(update)
        try:
            await self.load(step["version"], step)
        except Exception as error:
            update["error"] = describe_error(error)
            raise
        loaded = time.monotonic()
        # Without a pause, outputs of the last step under the old weights may still arrive.
        self.windows.append((paused, loaded + (LATE_SECONDS if mode == "none" else 0.0), self.version))
        if mode == "none":
            await asyncio.sleep(LATE_SECONDS)
            self.submit_all(step["while_paused"])
        else:
            await self.resume()

    def submit_all(self, steps):
        """Start the requests of several steps."""
        for step in steps:
            self.submit(step)

    async def give_up(self):
        """Abort all requests in flight: after a failed update nothing may be sampled."""
        for flight in self.flights:
            if not flight.ended:
                flight.error = flight.error or "given up after the update failed"
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in self.flights), return_exceptions=True)

    async def do_read_back(self, step):
        """Compare the worker's weights with this version and those before it."""
        versions = [version for version in self.job["checkpoints"] if int(version) <= int(self.version)]
        folders = [self.job["checkpoints"][version] for version in versions]
        answers = await asyncio.wait_for(self.engine.call("rlaudit_read_back", folders), self.job["drain_seconds"])
        read = json.loads(answers[0])

        def version_at(place):
            return None if place is None else versions[place]

        tensors = {name: version_at(place) for name, place in read["tensors"].items()}
        held = {"tensors": tensors, "unread": read["unread"], "logits": version_at(read["logits"])}
        self.read_backs.append({"case": self.case, "believed": self.version, **held})

    async def drain(self):
        """Wait for requests in flight; one that does not end in time is lost."""
        open_tasks = [flight.task for flight in self.flights if not flight.task.done()]
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=self.job["drain_seconds"])
        for flight in self.flights:
            if not flight.task.done():
                flight.lost = True
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in self.flights), return_exceptions=True)


class Flight:
    """One request, and the times of its outputs."""

    def __init__(self, session, step, request):
        self.run, self.request, self.max_tokens = step["run"], request, step["max_tokens"]
        self.token_ids, self.logprobs, self.deltas = [], [], []
        self.cached_tokens, self.finish_reason, self.error, self.ends = None, None, None, 0
        self.lost, self.surplus_logprobs = False, 0
        self.submitted, self.finished_at = session.version, None
        self.session, self.first_window = session, len(session.windows)
        self.id = "%s/%s/%d/%d" % (session.case, step["run"], request["prompt"], request["sample"])
        sampling = dict(session.job["sampling"], max_tokens=self.max_tokens, seed=request["seed"], logprobs=1)
        tokens = session.job["prompt_token_ids"][request["prompt"]]
        prompt = {"prompt_token_ids": tokens}
        if step.get("salt") is not None:
            prompt["cache_salt"] = step["salt"]
        self.task = asyncio.ensure_future(self.fly(session.engine, prompt, sampling))

    @property
    def ended(self):
        """Whether no more output will come."""
        return self.task.done()

    async def fly(self, engine, prompt, sampling):
        """Run the request, and record an error."""
        try:
            await engine.generate(self.id, prompt, sampling, self.take)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.error = describe_error(error)

    def take(self, output):
        """Record one output of the engine: new tokens, and a finish reason if it is the last."""
        completion = output.outputs[0]
        ids = list(completion.token_ids)
        arrived = time.monotonic()
        logprobs = list(completion.logprobs or [])
        if len(logprobs) < len(ids):
            raise RuntimeError("an output had %d tokens and %d logprobs" % (len(ids), len(logprobs)))
        for token, position in zip(ids, logprobs):
            self.token_ids.append(token)
            self.logprobs.append(position[token].logprob)
        # V1 ends an aborted request with no tokens but all logprobs of the request once more
        # (vllm/v1/engine/output_processor.py of 0.18.1 slices them with [-0:]): a caller that appends has them twice.
        self.surplus_logprobs += len(logprobs) - len(ids)
        self.deltas.append((arrived, len(ids)))
        if output.num_cached_tokens is not None and self.cached_tokens is None:
            self.cached_tokens = output.num_cached_tokens
        if completion.finish_reason is not None:
            self.ends += 1
            self.finish_reason = completion.finish_reason
            self.finished_at = self.session.version

    def row(self, session):
        """Return the record of the request."""
        return {
            "case": session.case,
            "run": self.run,
            "prompt": self.request["prompt"],
            "sample": self.request["sample"],
            "max_tokens": self.max_tokens,
            "token_ids": self.token_ids,
            "logprobs": self.logprobs,
            "versions": self.token_versions(session.windows[self.first_window :]),
            "cached_tokens": self.cached_tokens,
            "finish_reason": self.finish_reason,
            "ends": self.ends,
            "surplus_logprobs": self.surplus_logprobs,
            "lost": self.lost,
            "error": self.error,
            "submitted": self.submitted,
            "finished": self.finished_at,
        }

    def token_versions(self, windows):
        """Return the version of each token by its time of arrival; None for one that came during an update."""
        versions = []
        for arrived, count in self.deltas:
            current = self.submitted
            for begun, done, version in windows:
                if arrived > done:
                    current = version
                elif arrived > begun:
                    current = None
            versions.extend([current] * count)
        return versions


def describe_error(error):
    """Return the type and message of an error, shortened to one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]
