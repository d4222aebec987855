"""Updates the weights of a running vLLM, several times and in several ways, and records which weights sampled what.

A worker script (see engines/cells/worker.py). It loads steerable_engine.py, which hides how releases differ,
generate.py, which describes the engine's configuration, and, once the engine has started, the senders of
extension/rlaudit_weight_transport.py. Python 3.9 syntax, standard library only.

job
  model, revision, trust_remote_code, engine_args, engine (see generate.py)
  path           how weights are loaded: reload_weights, reload_from_iterator, load_weights or adapter
  transport      how they reach the workers: disk or broadcast
  checkpoints    {version: folder} of versions "0" and "1"; the engine starts with "0"
  adapters       {version: folder}, with path adapter: a LoRA each, over version "0"
  prompt_token_ids, sampling (of SamplingParams)
  runs           {name: {"requests": [{"prompt", "sample", "seed"}], "max_tokens"}}
  drain_seconds  how long requests may take after the last step of a case before they count as lost
  cases          [{"name", "mode", "clear_cache", "salted", "adapters", "read_back"}], one after the other in one engine
                   mode, clear_cache  of the pause; mode none: weights are loaded between two steps
                   salted             each request's cache_salt is the version of the weights that are to serve it
                   adapters           {version: {"name", "number", "in place"}}, what requests call it; nothing is in
                                      flight then. None: no adapter
                   read_back          whether the worker's weights are compared with both versions

Each case has the runs of laboratory/studies/updates/cases.py. A step that fails ends its case; after a failed update
the engine stays paused, and requests in flight are aborted.

samples.jsonl    one line per request: token ids, logprobs, the version each token was sampled with (null: while the
                 update ran), cached tokens, how it ended
result           resolved, kind, transport (the real one), read_backs, problems (the step at which a case ended early),
                 case_seconds
"""

import asyncio
import json
import time

LATE_SECONDS = 0.05
# The limit of calls that do not wait for requests; a pause with mode=wait and a load may take the job's drain_seconds.
CONTROL_SECONDS = 20.0
MODES = ("none", "keep", "wait", "abort")
# Of a request.
RECORDED = (
    *("case", "run", "max_tokens", "token_ids", "logprobs", "versions", "cached_tokens", "finish_reason", "ends"),
    *("surplus_logprobs", "lost", "error", "submitted", "finished"),
)
PLACE = ("prompt", "sample")


def run(job, channel):
    """Start the engine, play every case, and write the record of every request."""
    channel.phase("launch")
    # AsyncLLM starts its tasks on the event loop that runs when it is made.
    return asyncio.run(play(job, channel))


async def play(job, channel):
    """Play every case of the job on one engine."""
    channel.phase("load")
    async with channel.neighbour("steerable_engine").running(job, channel) as (engine, resolved):
        from rlaudit_weight_transport import FROM_DISK, Broadcast

        broadcast = Broadcast(job["drain_seconds"]) if job.get("transport") == "broadcast" else None
        ran = await broadcast.open(engine) if broadcast else FROM_DISK
        channel.phase("update")
        session = Session(job, engine, broadcast, channel)
        for case in job["cases"]:
            await session.play(case)
    channel.write_lines("samples.jsonl", session.rows)
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "transport": ran,
        "read_backs": session.read_backs,
        "problems": session.problems,
        "case_seconds": session.seconds,
    }


class Session:
    """One engine, and the record of everything that it did."""

    def __init__(self, job, engine, broadcast, channel):
        self.job, self.engine, self.broadcast, self.channel = job, engine, broadcast, channel
        # The weights that the engine should hold; None after a failed update.
        self.version, self.paused = "0", False
        # The version that samples what arrives now; None during an update.
        self.serving = "0"
        self.rows, self.read_backs, self.problems, self.seconds = [], [], {}, {}
        self.case, self.step, self.flights = None, None, []

    async def play(self, case):
        """Run one case up to its first failure, which is recorded."""
        self.case, self.flights = case["name"], []
        begun = time.monotonic()
        self.channel.emit("progress", done=len(self.seconds), total=len(self.job["cases"]))
        try:
            await self.steps_of(case)
        except self.channel.Unsupported as refusal:
            self.record("unsupported", str(refusal))
        except Exception as error:
            self.record("failed", describe_error(error))
            if self.step == "update":
                self.give_up()
        await self.drain()
        self.rows.extend(flight.row() for flight in self.flights)
        self.seconds[self.case] = time.monotonic() - begun

    def record(self, status, message):
        """Record how the present step ended."""
        self.problems[self.case] = {"step": self.step, "status": status, "message": message}

    async def steps_of(self, case):
        """Fill the cache, update with requests in flight, and sample with the new weights: warm, cold, warm."""
        salted, length = case["salted"], self.job["runs"]["flight"]["max_tokens"]
        self.step = "restore"
        await self.restore(case)
        self.step = "submit"
        if salted and not self.channel.neighbour("steerable_engine").takes_salts(self.engine.kind):
            raise self.channel.Unsupported("no cache_salt in this vLLM (it came with 0.9.0, in V1)")
        await self.wait_for(self.submit("cold", salted))
        # Requests in flight keep the adapter that they name, so an adapter meets none.
        if case["adapters"]:
            await self.wait_for(self.submit("before", salted))
        else:
            await self.wait_for(self.submit("flight", salted), length // 3)
        self.step = "update"
        await self.update(case)
        self.step = "settle"
        await self.wait_for(self.flights)
        if case["read_back"]:
            self.step = "read_back"
            await self.read_back()
        self.step = "reset_prefix_cache"
        await self.reset_prefix_cache()
        self.step = "submit"
        for run in ("cold after", "warm after"):
            await self.wait_for(self.submit(run, salted))

    async def restore(self, case):
        """Load version 0 again, with an empty cache. It is not measured, but a case needs it to mean anything."""
        if self.version != "0" or case["adapters"]:
            await self.load("0", case)
        self.serving = "0"
        if self.paused:
            # The previous case ended in its update.
            await self.resume()
        await self.reset_prefix_cache()

    async def load(self, version, case):
        """Load a version of the weights, or an adapter by the name that the case gives it."""
        source = {"from": "disk", "path": self.job["checkpoints"].get(version)}
        if case["adapters"]:
            source = dict(case["adapters"][version], path=self.job["adapters"][version])
        try:
            if self.broadcast and not case["adapters"]:
                await self.broadcast.load(self.engine, source["path"])
            else:
                await asyncio.wait_for(self.engine.load(source), self.job["drain_seconds"])
        except BaseException:
            self.version = None
            raise
        self.version = version

    async def reset_prefix_cache(self):
        """Empty the prefix cache. Raises RuntimeError if the engine reports that it did not."""
        done = await asyncio.wait_for(self.engine.reset_prefix_cache(), CONTROL_SECONDS)
        if done is False:
            raise RuntimeError("the prefix cache was not reset: blocks are in use")

    def submit(self, run, salted, version=None):
        """Start the requests of a run, to be served by these weights; None: those that the engine has."""
        salt = (version or self.version) if salted else None
        flights = [Flight(self, run, request, salt) for request in self.job["runs"][run]["requests"]]
        self.flights.extend(flights)
        return flights

    async def wait_for(self, flights, until=None):
        """Wait until each of the flights has `until` tokens or has ended. Raises RuntimeError after drain_seconds."""
        limit = time.monotonic() + self.job["drain_seconds"]
        while not all(flight.ended or (until and len(flight.token_ids) >= until) for flight in flights):
            if time.monotonic() > limit:
                raise RuntimeError("requests do not advance")
            await asyncio.sleep(0.002)

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

    async def update(self, case):
        """Pause, submit new requests, load and resume. After a failed load the engine stays paused."""
        pauses = case["mode"] != "none"
        if pauses:
            await self.pause(case["mode"], case["clear_cache"])
        self.serving = None
        if pauses:
            self.submit("after", case["salted"], "1")
        await self.load("1", case)
        if not pauses:
            # Outputs of the last step under the old weights may still arrive.
            await asyncio.sleep(LATE_SECONDS)
        self.serving = "1"
        if pauses:
            await self.resume()
        else:
            self.submit("after", case["salted"])

    def give_up(self):
        """Abort all requests in flight: after a failed update nothing may be sampled."""
        for flight in self.flights:
            if not flight.ended:
                flight.error = flight.error or "given up after the update failed"
                flight.task.cancel()

    async def read_back(self):
        """Compare the worker's weights with both versions."""
        versions = sorted(self.job["checkpoints"])
        folders = [self.job["checkpoints"][version] for version in versions]
        answers = await asyncio.wait_for(self.engine.call("rlaudit_read_back", folders), self.job["drain_seconds"])
        read = json.loads(answers[0])
        tensors = {name: None if place is None else versions[place] for name, place in read["tensors"].items()}
        logits = None if read["logits"] is None else versions[read["logits"]]
        held = {"tensors": tensors, "unread": read["unread"], "logits": logits}
        self.read_backs.append({"case": self.case, "believed": self.version, **held})

    async def drain(self):
        """Wait for requests in flight; one that does not end in time is lost."""
        open_tasks = [flight.task for flight in self.flights if not flight.ended]
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=self.job["drain_seconds"])
        for flight in self.flights:
            if not flight.ended:
                flight.lost = True
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in self.flights), return_exceptions=True)


class Flight:
    """One request, and the times of its outputs."""

    def __init__(self, session, run, request, salt):
        self.run, self.request, self.max_tokens = run, request, session.job["runs"][run]["max_tokens"]
        self.token_ids, self.logprobs, self.versions = [], [], []
        self.cached_tokens, self.finish_reason, self.error, self.ends = None, None, None, 0
        self.lost, self.surplus_logprobs = False, 0
        # The versions in force at submission and at the end.
        self.submitted, self.finished = session.version, None
        self.session, self.case = session, session.case
        self.id = "%s/%s/%d/%d" % (session.case, run, request["prompt"], request["sample"])
        sampling = dict(session.job["sampling"], max_tokens=self.max_tokens, seed=request["seed"], logprobs=1)
        prompt = {"prompt_token_ids": session.job["prompt_token_ids"][request["prompt"]]}
        if salt is not None:
            prompt["cache_salt"] = salt
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
        logprobs = list(completion.logprobs or [])
        if len(logprobs) < len(ids):
            raise RuntimeError("an output had %d tokens and %d logprobs" % (len(ids), len(logprobs)))
        for token, position in zip(ids, logprobs):
            self.token_ids.append(token)
            self.logprobs.append(position[token].logprob)
        # V1 ends an aborted request with no tokens but all logprobs of the request once more
        # (vllm/v1/engine/output_processor.py of 0.18.1 slices them with [-0:]): a caller that appends has them twice.
        self.surplus_logprobs += len(logprobs) - len(ids)
        self.versions += [self.session.serving] * len(ids)
        if output.num_cached_tokens is not None and self.cached_tokens is None:
            self.cached_tokens = output.num_cached_tokens
        if completion.finish_reason is not None:
            self.ends += 1
            self.finish_reason = completion.finish_reason
            self.finished = self.session.version

    def row(self):
        """Return the record of the request."""
        return dict({name: getattr(self, name) for name in RECORDED}, **{name: self.request[name] for name in PLACE})


def describe_error(error):
    """Return the type and message of an error, shortened to one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]
