"""Updates the weights of a running vLLM, several times and in several ways, and records which weights sampled what.

A worker script (see engines/worker.py) with two files beside it: steerable_engine.py, which hides how releases differ,
and generate.py, which describes what the engine resolved.

job
  model, revision, trust_remote_code, engine_args
  path           how weights are loaded: reload_weights, reload_from_iterator, load_weights or weight_transfer
  checkpoints    {version: folder}; version "0" is what the engine starts with
  prompt_token_ids, sampling (of SamplingParams)
  drain_seconds  how long requests may take after the last step of a case before they count as lost
  cases          [{"name", "go_on", "steps": [...]}], one after the other in the same engine. A step that fails ends
                 its case unless `go_on`; after a failed update nothing is submitted. Steps:
                   {"do": "restore"}             version 0 again, nothing in the cache
                   {"do": "reset_prefix_cache"}
                   {"do": "submit", "run", "requests", "max_tokens", "until"}
                        returns when each request has `until` tokens (default: all of them)
                   {"do": "advance", "run", "until"}   wait for more tokens of a run
                   {"do": "settle"}              wait for every request
                   {"do": "update", "version", "mode", "clear_cache", "skip", "while_paused": [submits]}
                        an update that fails is not resumed from, and what was in flight is given up
                   {"do": "read_back"}           compare what the worker holds with versions that are numbers
                   {"do": "pause", "mode", "clear_cache"}, {"do": "resume"}, {"do": "health"}
                   {"do": "kill"}                end the engine's processes, as the kernel does when memory runs out

samples.jsonl    one line per request: token ids, logprobs, the version each token was sampled with (null: while the
                 update ran), cached tokens, how it ended
result           resolved, kind, updates, read_backs, steps (what each said), seconds
"""

import asyncio
import importlib.util
import os
import signal

LATE_SECONDS = 0.05
# Calls that have nothing to wait for; a pause with mode=wait and a load may take the job's drain_seconds.
CONTROL_SECONDS = 20.0
DEATH_SECONDS = 5.0


def neighbour(name):
    """A file shipped beside this one, as a module; found by path because rlaudit is not installed here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("rlaudit_engine_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(job, channel):
    """Start the engine, play every case, and leave what every request returned."""
    channel.phase("launch")
    steering = neighbour("steerable_engine")
    describe = neighbour("generate").resolve
    # The event loop first: AsyncLLM starts its tasks on the loop that runs when it is made.
    return asyncio.run(play(job, channel, steering, describe))


async def play(job, channel, steering, describe):
    """Every case of the job on one engine."""
    channel.phase("load")
    started = steering.now()
    engine = steering.start(job, channel)
    try:
        await engine.prepare()
        resolved = describe(Described(engine.config, engine.kind))
        channel.emit("loaded", resolved=resolved)
        channel.phase("update")
        session = Session(job, engine, steering, channel)
        loaded_after = steering.now() - started
        for case in job["cases"]:
            await session.play(case)
    finally:
        engine.shutdown()
    channel.write_lines("samples.jsonl", session.rows)
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "updates": session.updates,
        "read_backs": session.read_backs,
        "steps": session.said,
        "load_seconds": loaded_after,
        "case_seconds": session.seconds,
    }


class Described:
    """Looks to generate.resolve like an LLM with this configuration."""

    def __init__(self, config, kind):
        module = "vllm.v1.engine" if kind == "V1" else "vllm.engine"
        self.llm_engine = type("Engine", (), {"vllm_config": config, "__module__": module})()


class Session:
    """One engine, the weights it is believed to hold, and everything that was seen."""

    def __init__(self, job, engine, steering, channel):
        self.job, self.engine, self.steering, self.channel = job, engine, steering, channel
        self.version, self.broken = "0", False
        self.rows, self.updates, self.read_backs, self.said, self.seconds = [], [], [], [], {}
        self.case, self.flights, self.windows = None, [], []

    async def play(self, case):
        """Run the steps of one case; what goes wrong is kept, and the case ends there."""
        self.case, self.flights, self.windows = case["name"], [], []
        begun = self.steering.now()
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
                self.say(step["do"], "failed", describe_error(error))
                if step["do"] == "update":
                    await self.give_up()
                if not case.get("go_on"):
                    break
        await self.drain()
        self.rows.extend(flight.row(self) for flight in self.flights)
        self.seconds[self.case] = self.steering.now() - begun

    def say(self, step, status, message):
        """Keep what a step came to."""
        self.said.append({"case": self.case, "step": step, "status": status, "message": message})

    async def do_restore(self, step):
        """Version 0 again, with nothing cached. Not measured, but it must work for a case to mean anything."""
        if self.version != "0" or self.broken:
            await self.load("0", ())
        self.broken = False
        await self.do_reset_prefix_cache(step)

    async def load(self, version, skip):
        """Load a checkpoint within the time that anything may take."""
        await asyncio.wait_for(
            self.engine.load(self.job["checkpoints"][version], skip, version), self.job["drain_seconds"]
        )
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
        limit = self.steering.now() + self.job["drain_seconds"]
        while not all(flight.ended or (until and len(flight.token_ids) >= until) for flight in flights):
            if self.steering.now() > limit:
                raise RuntimeError("requests do not advance")
            await asyncio.sleep(0.002)

    def submit(self, step):
        """Start the requests of a step."""
        flights = [Flight(self, step, request) for request in step["requests"]]
        self.flights.extend(flights)
        return flights

    async def do_pause(self, step):
        """Pause as the step says; raises Unsupported where the release cannot."""
        mode, clear = step["mode"], step["clear_cache"]
        if not self.engine.can_pause(mode, clear):
            raise self.channel.Unsupported("no pause with mode=%s, clear_cache=%s in this vLLM" % (mode, clear))
        await asyncio.wait_for(self.engine.pause(mode, clear), self.job["drain_seconds"])

    async def do_resume(self, step):
        """Go on sampling."""
        await asyncio.wait_for(self.engine.resume(), CONTROL_SECONDS)

    async def do_update(self, step):
        """Pause, load, resume, with the times that tell before from after. A failed load is never resumed from."""
        now, mode = self.steering.now, step["mode"]
        update = {"case": self.case, "from": self.version, "to": step["version"], "mode": mode, "error": None}
        update.update(clear_cache=step["clear_cache"], skip=list(step.get("skip", ())))
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
            await self.load(step["version"], step.get("skip", ()))
        except Exception as error:
            update["error"] = describe_error(error)
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
        told["logits"] = None if told["logits"] is None else versions[told["logits"]]
        self.read_backs.append({"case": self.case, "believed": None if self.broken else self.version, **told})

    async def do_health(self, step):
        """Whether the engine calls itself healthy."""
        await asyncio.wait_for(self.engine.check_health(), CONTROL_SECONDS)
        self.say("health", "ok", "check_health() raised nothing")

    async def do_kill(self, step):
        """End every process of the engine, as the kernel does when memory runs out."""
        victims = [pid for pid in children(os.getpid()) if pid != os.getpid()]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.say("kill", "ok", "%d processes of the engine ended" % len(victims))
        # The front end notices in its own time; asking at once would find it unaware.
        await asyncio.sleep(DEATH_SECONDS)

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


class Flight:
    """One request: what it was asked, and what came back when."""

    def __init__(self, session, step, request):
        self.run, self.request, self.max_tokens = step["run"], request, step["max_tokens"]
        self.token_ids, self.logprobs, self.deltas = [], [], []
        self.cached_tokens, self.finish_reason, self.error, self.ends = None, None, None, 0
        self.native_versions, self.lost, self.surplus_logprobs = None, False, 0
        self.submitted, self.finished_at = session.version, None
        self.session, self.first_window = session, len(session.windows)
        self.id = "%s/%s/%d/%d" % (session.case, step["run"], request["prompt"], request["sample"])
        sampling = dict(session.job["sampling"], max_tokens=self.max_tokens, seed=request["seed"], logprobs=1)
        tokens = session.job["prompt_token_ids"][request["prompt"]]
        self.task = asyncio.ensure_future(self.fly(session.engine, tokens, sampling))

    @property
    def ended(self):
        """Whether nothing more will come."""
        return self.task.done()

    async def fly(self, engine, tokens, sampling):
        """Run the request; an error is kept with it."""
        try:
            await engine.generate(self.id, tokens, sampling, self.take)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.error = describe_error(error)

    def take(self, output):
        """One output of the engine: new tokens, and at the end how it ended."""
        completion = output.outputs[0]
        ids = list(completion.token_ids)
        at = self.session.steering.now()
        logprobs = list(completion.logprobs or [])
        if len(logprobs) < len(ids):
            raise RuntimeError("an output had %d tokens and %d logprobs" % (len(ids), len(logprobs)))
        for token, position in zip(ids, logprobs):
            self.token_ids.append(token)
            self.logprobs.append(position[token].logprob)
        # V1 ends an aborted request with no tokens and, in place of none, all logprobs of the request once more
        # (0.18.1 v1/engine/output_processor.py slices them with [-0:]): whoever appends deltas has them twice.
        self.surplus_logprobs += len(logprobs) - len(ids)
        self.deltas.append((at, len(ids)))
        if output.num_cached_tokens is not None and self.cached_tokens is None:
            self.cached_tokens = output.num_cached_tokens
        if completion.finish_reason is not None:
            self.ends += 1
            self.finish_reason = completion.finish_reason
            self.finished_at = self.session.version
            spans = getattr(completion, "weight_versions", None)
            self.native_versions = None if spans is None else [str(span) for span in spans]

    def row(self, session):
        """What is kept of the request."""
        return {
            "case": session.case,
            "run": self.run,
            "prompt": self.request["prompt"],
            "sample": self.request["sample"],
            "max_tokens": self.max_tokens,
            "token_ids": self.token_ids,
            "logprobs": self.logprobs,
            "versions": self.token_versions(session.windows[self.first_window :]),
            "deltas": [count for _, count in self.deltas],
            "cached_tokens": self.cached_tokens,
            "finish_reason": self.finish_reason,
            "ends": self.ends,
            "surplus_logprobs": self.surplus_logprobs,
            "lost": self.lost,
            "error": self.error,
            "submitted": self.submitted,
            "finished": self.finished_at,
            "native_versions": self.native_versions,
        }

    def token_versions(self, windows):
        """The version of each token by the time it arrived; None for one that came while an update ran."""
        versions = []
        for at, count in self.deltas:
            current = self.submitted
            for begun, done, version in windows:
                if at > done:
                    current = version
                elif at > begun:
                    current = None
            versions.extend([current] * count)
        return versions


def describe_error(error):
    """Type and first words of an error, on one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]


def children(pid):
    """Every process below `pid` (Linux)."""
    below, parents = [], {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as stat:
                    parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    frontier = [pid]
    while frontier:
        frontier = [child for child, parent in parents.items() if parent in frontier]
        below += frontier
    return below
