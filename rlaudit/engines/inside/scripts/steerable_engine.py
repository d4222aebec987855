"""One interface to steer every vLLM through a weight update: submit, pause, load, resume.

`AsyncEngine` is the V1 AsyncLLM, with the pause and update calls of the release, found by their signatures.
`SteppedEngine` is for releases without them (0.8.5, engine V0): our loop steps the engine, and an update goes between
two steps, as frameworks did there with a lock around the executor.

Loaded by update_weights.py and rollouts_for_training.py. Python 3.9 syntax, standard library and engine only.
"""

import asyncio
import contextlib
import inspect
import json
import os

EXTENSION = "rlaudit_weight_update.WeightUpdate"
# Parameters of the engine's own reload_weights, which had none before 0.16.0 and read the first checkpoint again.
RELOAD_NEEDS = {"reload_weights": "weights_path", "reload_from_iterator": "weights_iterator"}


@contextlib.asynccontextmanager
async def running(job, channel):
    """Start the engine of the job, yield it with its resolved configuration, and shut it down afterwards."""
    generate = channel.neighbour("generate")
    channel.neighbour("loaded_engine").offer_extensions()
    with generate.refusal_of_engine(job, channel):
        engine = start(job, channel)
    try:
        await engine.prepare()
        resolved = generate.resolve(Described(engine.config, engine.kind), {})
        channel.emit("loaded", resolved=resolved)
        generate.check_engine(job, resolved["engine"], channel)
        yield engine, resolved
    finally:
        engine.shutdown()


class Described:
    """Stands for an LLM with this configuration in generate.resolve."""

    def __init__(self, config, kind):
        module = "vllm.v1.engine" if kind == "V1" else "vllm.engine"
        self.llm_engine = type("Engine", (), {"vllm_config": config, "__module__": module})()


def start(job, channel):
    """Start the engine with our worker extension. Raises Unsupported if the release does not have the path."""
    arguments = dict(job["engine_args"], model=job["model"], worker_extension_cls=job.get("extension", EXTENSION))
    if job.get("trust_remote_code"):
        arguments["trust_remote_code"] = True
    if job.get("revision"):
        arguments["revision"] = job["revision"]
    try:
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError:
        AsyncLLM = None
    if AsyncLLM is not None and hasattr(AsyncLLM, "pause_generation"):
        return AsyncEngine(AsyncLLM, arguments, job["path"], channel)
    return SteppedEngine(arguments, job["path"], channel)


def pause_arguments(parameters, mode, clear_cache):
    """Return keyword arguments of a `pause_generation` that has `parameters`; None if it cannot pause like that.

    0.12.0 had wait_for_inflight_requests, 0.16.0 added mode, 0.32.0 removed the first.
    """
    arguments = {}
    if "mode" in parameters:
        arguments["mode"] = mode
    elif "wait_for_inflight_requests" in parameters and mode in ("wait", "abort"):
        arguments["wait_for_inflight_requests"] = mode == "wait"
    else:
        return None
    if "clear_cache" in parameters:
        arguments["clear_cache"] = clear_cache
    elif not clear_cache:
        return None
    return arguments


def takes_salts(kind):
    """Return whether prompts of this vLLM have a cache_salt that an engine of this kind reads: V1, from 0.9.0 on."""
    from vllm.inputs import TokensPrompt

    return kind == "V1" and "cache_salt" in TokensPrompt.__annotations__


def lora_request(adapter, channel, in_place=False):
    """Return the LoRARequest of an adapter, None for None. Raises Unsupported for a release without load_inplace."""
    if adapter is None:
        return None
    from vllm.lora.request import LoRARequest

    arguments = {"lora_name": adapter["name"], "lora_int_id": adapter["number"], "lora_path": adapter["path"]}
    if in_place:
        if "load_inplace" not in inspect.signature(LoRARequest).parameters:
            raise channel.Unsupported("a LoRARequest of this vLLM has no load_inplace")
        arguments["load_inplace"] = True
    return LoRARequest(**arguments)


class AsyncEngine:
    """V1's AsyncLLM: the engine runs in another process."""

    kind = "V1"

    def __init__(self, async_llm, arguments, path, channel):
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.sampling_params import RequestOutputKind

        self.path = path
        self.channel = channel
        # The adapter of requests that are submitted from now on.
        self.adapter = None
        if hasattr(AsyncEngineArgs, "disable_log_stats"):
            arguments.setdefault("disable_log_stats", True)
        self.output_kind = RequestOutputKind.DELTA
        self.engine = async_llm.from_engine_args(AsyncEngineArgs(**arguments))
        self.config = self.engine.vllm_config
        self.pause_parameters = tuple(inspect.signature(self.engine.pause_generation).parameters)

    async def prepare(self):
        """Initialize the update path. Raises Unsupported if the release does not have it."""
        needed = RELOAD_NEEDS.get(self.path)
        if needed and needed not in json.loads((await self.call("rlaudit_reload_takes"))[0]):
            raise self.channel.Unsupported("reload_weights of this vLLM takes no %s" % needed)

    def can_pause(self, mode, clear_cache):
        """Return whether this release has that kind of pause."""
        return mode == "none" or pause_arguments(self.pause_parameters, mode, clear_cache) is not None

    async def pause(self, mode, clear_cache):
        """Pause; return when the engine reports that it is paused."""
        await self.engine.pause_generation(**pause_arguments(self.pause_parameters, mode, clear_cache))

    async def resume(self):
        """Go on sampling."""
        await self.engine.resume_generation()

    async def load(self, source):
        """Load from the source by the job's path: an adapter, or as in extension/rlaudit_weight_transport.py."""
        if self.path == "adapter":
            self.adapter = source
            if source["in place"]:
                await self.engine.add_lora(lora_request(self.adapter, self.channel, in_place=True))
            return None
        if self.path == "reload_weights":
            return await self.engine.collective_rpc("reload_weights", kwargs={"weights_path": source["path"]})
        return await self.engine.collective_rpc("rlaudit_" + self.path, args=(source,))

    async def call(self, method, *arguments):
        """Return each worker's answer to a method of our extension."""
        return await self.engine.collective_rpc(method, args=arguments)

    async def reset_prefix_cache(self):
        """Return whether the cache was emptied; None if the release does not report it."""
        return await self.engine.reset_prefix_cache()

    async def generate(self, request_id, prompt, sampling, on_tokens):
        """Run one request, and call on_tokens with each output. prompt: vLLM's TokensPrompt."""
        from vllm import SamplingParams

        await self.check_health()
        parameters = SamplingParams(output_kind=self.output_kind, detokenize=False, **sampling)
        adapter = lora_request(self.adapter, self.channel)
        async for output in self.engine.generate(prompt, parameters, request_id, lora_request=adapter):
            on_tokens(output)

    async def check_health(self):
        """Raise if the engine is dead."""
        await self.engine.check_health()

    def shutdown(self):
        """End the engine's processes."""
        self.engine.shutdown()


class SteppedEngine:
    """An engine without a pause call, stepped by our loop: an update goes between two steps."""

    def __init__(self, arguments, path, channel):
        if path in ("reload_weights", "reload_from_iterator"):
            raise channel.Unsupported("this vLLM has no reload_weights")
        # A V1 engine in a separate process, without pause_generation, would go on stepping during the update.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        from vllm import LLM
        from vllm.sampling_params import RequestOutputKind

        self.path = path
        self.channel = channel
        self.adapter = None
        self.output_kind = RequestOutputKind.DELTA
        self.llm = LLM(**arguments)
        self.engine = self.llm.llm_engine
        self.kind = "V1" if ".v1." in type(self.engine).__module__ else "V0"
        self.config = self.engine.vllm_config
        self.waiting = {}
        self.paused = False
        self.failure = None
        self.loop_task = None

    async def prepare(self):
        """Start the loop that steps the engine."""
        self.loop_task = asyncio.ensure_future(self._step_forever())

    async def _step_forever(self):
        while True:
            if self.paused or not self.engine.has_unfinished_requests():
                await asyncio.sleep(0.002)
                continue
            try:
                outputs = self.engine.step()
            except Exception as error:
                self.failure = error
                for queue in self.waiting.values():
                    queue.put_nowait(error)
                return
            for output in outputs:
                if output.request_id in self.waiting:
                    self.waiting[output.request_id].put_nowait(output)
            await asyncio.sleep(0)

    def can_pause(self, mode, clear_cache):
        """Return whether our loop can pause like that: between two steps, when running requests keep their blocks, or
        after the last request."""
        return mode == "wait" or (mode in ("none", "keep") and not clear_cache)

    async def pause(self, mode, clear_cache):
        """Stop stepping; with mode `wait` after the last request has ended."""
        while mode == "wait" and self.engine.has_unfinished_requests():
            await self.check_health()
            await asyncio.sleep(0.002)
        self.paused = True
        await asyncio.sleep(0.02)
        if clear_cache and self.engine.reset_prefix_cache() is False:
            raise RuntimeError("the prefix cache was not reset: blocks are in use")

    async def resume(self):
        """Step again."""
        self.paused = False

    async def load(self, source):
        """`model.load_weights` in every worker, between two steps; or another adapter for requests to come."""
        await self.check_health()
        if self.path == "adapter":
            self.adapter = source
            if source["in place"]:
                self.engine.add_lora(lora_request(self.adapter, self.channel, in_place=True))
            return None
        return self.engine.collective_rpc("rlaudit_load_weights", args=(source,))

    async def call(self, method, *arguments):
        """Return each worker's answer to a method of our extension."""
        return self.engine.collective_rpc(method, args=arguments)

    async def reset_prefix_cache(self):
        """Return whether the cache was emptied."""
        return self.engine.reset_prefix_cache()

    async def generate(self, request_id, prompt, sampling, on_tokens):
        """Run one request, and call on_tokens with each output. prompt: vLLM's TokensPrompt."""
        await self.check_health()
        from vllm import SamplingParams

        parameters = SamplingParams(output_kind=self.output_kind, detokenize=False, **sampling)
        self.waiting[request_id] = asyncio.Queue()
        try:
            adapter = lora_request(self.adapter, self.channel)
            self.engine.add_request(request_id, prompt, parameters, lora_request=adapter)
            while True:
                output = await self.waiting[request_id].get()
                if isinstance(output, Exception):
                    raise output
                on_tokens(output)
                if output.finished:
                    return
        except asyncio.CancelledError:
            # AsyncLLM aborts by itself.
            self.engine.abort_request([request_id])
            raise
        finally:
            del self.waiting[request_id]

    async def check_health(self):
        """Raise the error of a failed step: no step follows it, and a request would wait forever."""
        if self.failure is not None:
            raise self.failure

    def shutdown(self):
        """The engine ends with this process."""
        if self.loop_task is not None:
            self.loop_task.cancel()
