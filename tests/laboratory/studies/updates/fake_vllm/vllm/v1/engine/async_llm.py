import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

# What FAKE_AILMENT may be: lose, repeat, leak, short; or meets-updates, where every request but the first three is held
# half way until weights arrive, so that each update meets requests, however fast the machine is.
AILMENT = os.environ.get("FAKE_AILMENT", "")
STEP_SECONDS = 0.004


def let_time_fly():
    """From now on a clock that runs a thousand times as fast: what is waited for in vain is soon given up."""
    clock, begun = time.monotonic, time.monotonic()
    time.monotonic = lambda: begun + 1000 * (clock() - begun)


@dataclass
class Logprob:
    logprob: float


@dataclass
class Running:
    request_id: str
    # The blocks of the prompt: its tokens, its salt, and the name of its adapter.
    key: tuple
    sampling: object
    outputs: asyncio.Queue = field(default_factory=asyncio.Queue)
    made: int = 0
    cached: int = 0
    number: int = 0
    version: int = 0
    adapter: int = 0


class AsyncLLM:
    """Token n of a request is n; its logprob is -(1 + version), less 0.25 where its prompt's keys are old."""

    @classmethod
    def from_engine_args(cls, arguments):
        return cls(arguments)

    def __init__(self, arguments):
        self.arguments = arguments
        self.version = read_version(arguments.model)
        self.running, self.cache, self.taken = [], {}, 0
        # By number: as vLLM does, one that is there is not loaded again.
        self.adapters = {}
        self.paused, self.loop, self.resumed = None, None, False
        self.flies = False
        nothing = SimpleNamespace(model_config=None)
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(
                dtype="float32",
                max_model_len=64,
                seed=0,
                enforce_eager=True,
                quantization=None,
                get_diff_sampling_param=dict,
            ),
            cache_config=SimpleNamespace(
                enable_prefix_caching=arguments.enable_prefix_caching, block_size=4, cache_dtype="auto"
            ),
            scheduler_config=SimpleNamespace(max_num_batched_tokens=64, max_num_seqs=64),
            parallel_config=SimpleNamespace(tensor_parallel_size=1),
            device_config=SimpleNamespace(device_type="cpu"),
            other=nothing,
        )

    async def add_lora(self, adapter):
        if adapter.lora_int_id not in self.adapters or adapter.load_inplace:
            self.adapters[adapter.lora_int_id] = read_version(adapter.lora_path)
        return True

    def version_of(self, running):
        return self.adapters.get(running.adapter, self.version)

    async def generate(self, prompt, sampling, request_id, lora_request=None):
        if self.loop is None:
            self.loop = asyncio.ensure_future(self._steps())
        if lora_request is not None:
            await self.add_lora(lora_request)
        name, number = (None, 0) if lora_request is None else (lora_request.lora_name, lora_request.lora_int_id)
        key = (prompt.get("cache_salt"), name, *prompt["prompt_token_ids"])
        running = Running(request_id, key, sampling, number=self.taken, version=self.version, adapter=number)
        self.taken += 1
        self.running.append(running)
        while True:
            output = await running.outputs.get()
            yield output
            if output.finished:
                return

    async def _steps(self):
        while True:
            await asyncio.sleep(STEP_SECONDS)
            for place, running in enumerate(list(self.running)):
                if self.paused is not None and not self._goes_on(running, place):
                    continue
                if AILMENT == "lose" and self.resumed and place == 0 and running.made:
                    if len(self.running) == 1 and not self.flies:
                        self.flies = True
                        let_time_fly()
                    continue
                if AILMENT == "meets-updates" and self._waits_for_weights(running):
                    continue
                self._step(running)
                if AILMENT == "repeat" and self.resumed and place == 0:
                    self.resumed = False
                    self._step(running, again=True)

    def _waits_for_weights(self, running):
        half_way = running.made == running.sampling.max_tokens // 2
        return half_way and running.number >= 3 and running.version == self.version

    def _goes_on(self, running, place):
        if AILMENT == "leak":
            return place == 0
        return self.paused == "wait" and running.made > 0

    def _step(self, running, again=False):
        if running.made == 0:
            if self.arguments.enable_prefix_caching and running.key in self.cache:
                running.cached = 4
            else:
                self.cache[running.key] = self.version_of(running)
            running.keys = self.cache.get(running.key, self.version_of(running))
        stale = running.keys != self.version_of(running)
        value = -(1.0 + self.version_of(running)) - 0.25 * stale
        token = running.made - again
        running.made += not again
        wanted = running.sampling.max_tokens
        done = running.made >= wanted
        self._emit(running, [token], [{token: Logprob(value)}], "length" if done else None)
        if done and running in self.running:
            self.running.remove(running)

    def _emit(self, running, tokens, logprobs, reason):
        completion = SimpleNamespace(token_ids=tokens, logprobs=logprobs, finish_reason=reason)
        running.outputs.put_nowait(
            SimpleNamespace(
                outputs=[completion],
                finished=reason is not None,
                num_cached_tokens=running.cached,
                request_id=running.request_id,
            )
        )

    async def pause_generation(self, *, mode="abort", clear_cache=True):
        self.paused = mode
        if mode == "abort":
            for running in self.running:
                # As 0.18.1 does: no token, and all logprobs once more.
                again = [{place: Logprob(-1.0)} for place in range(running.made)]
                self._emit(running, [], again, "abort")
            self.running = []
        while mode == "wait" and self.running:
            await asyncio.sleep(STEP_SECONDS)
        if clear_cache:
            self.cache = {}
            for running in self.running:
                running.keys = None
        await asyncio.sleep(0.01)

    async def resume_generation(self):
        for running in self.running:
            if getattr(running, "keys", 0) is None:
                running.keys = self.version
        self.paused, self.resumed = None, True

    async def reset_prefix_cache(self):
        if self.running:
            return False
        self.cache = {}
        return True

    async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        if method == "reload_weights":
            self.version = read_version(kwargs["weights_path"])
            await asyncio.sleep(0.01)
            return [None]
        if method == "rlaudit_reload_takes":
            return [json.dumps([] if AILMENT == "before 0.16.0" else ["weights_path"])]
        if method == "rlaudit_place":
            return [json.dumps({"gpu": None, "nccl": None})]
        if method == "rlaudit_read_back":
            versions = [read_version(path) for path in args[0]]
            place = versions.index(self.version)
            return [json.dumps({"tensors": {"w": place}, "unread": [], "logits": place})]
        raise AttributeError(f"the worker has no {method}")

    async def abort(self, request_id):
        self.running = [running for running in self.running if running.request_id != request_id]

    async def check_health(self):
        return None

    def shutdown(self):
        if self.loop is not None:
            self.loop.cancel()


def read_version(folder):
    document = json.loads((Path(folder) / "weights.json").read_text())
    return document["version"]
