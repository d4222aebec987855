"""The engine core, in the front end's process or its own (vllm/v1/engine/core.py of 0.18.1)."""

import time
import traceback
from types import SimpleNamespace
from typing import NamedTuple

from vllm.plugins import load_general_plugins
from vllm.sampled import in_steps, tokens_of
from vllm.v1.worker.worker_base import WorkerWrapperBase


class LogprobsLists(NamedTuple):
    logprob_token_ids: list
    logprobs: list
    sampled_token_ranks: list


class EngineCore:
    def __init__(self, vllm_config):
        load_general_plugins()
        self.vllm_config = vllm_config
        self.scheduler = SimpleNamespace(requests={})
        self.wrapper = WorkerWrapperBase(vllm_config)
        self.wrapper.init_device()
        self.wrapper.worker.load_model()

    def add_request(self, request):
        pairs = tokens_of(request.prompt_token_ids, request.index, request.sampling_params)
        steps = in_steps(request.prompt_token_ids, request.index, pairs)
        self.scheduler.requests[request.request_id] = SimpleNamespace(request=request, steps=steps, begun=False)

    def abort_requests(self, request_ids):
        for request in request_ids:
            self.scheduler.requests.pop(request, None)

    def step(self):
        outputs = []
        for name, held in list(self.scheduler.requests.items()):
            pairs, asked = held.steps.pop(0), held.request.sampling_params
            logprobs = None
            if asked.logprobs is not None:
                logprobs = LogprobsLists([[token, 7] for token, _ in pairs], [[value, -9.0] for _, value in pairs], [])
            output = SimpleNamespace(
                request_id=name,
                new_token_ids=[token for token, _ in pairs],
                new_logprobs=logprobs,
                finish_reason=None if held.steps else "length",
                stop_reason=None,
                num_cached_tokens=0 if held.begun else len(held.request.prompt_token_ids) // 2,
            )
            held.begun = True
            if not held.steps:
                del self.scheduler.requests[name]
            outputs.append(output)
        return outputs, time.monotonic()

    def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        return [getattr(self.wrapper.worker, method)(*args, **(kwargs or {}))]

    def reset_prefix_cache(self, reset_running_requests=False):
        return not self.scheduler.requests

    def sleep(self, level=1):
        self.wrapper.worker.sleep(level)

    def wake_up(self, tags=None):
        self.wrapper.worker.wake_up(tags)

    def pause_scheduler(self, mode="abort", clear_cache=True):
        return None

    def resume_scheduler(self):
        return None


class EngineCoreProc(EngineCore):
    """Answers calls that come through a pipe."""

    def pause_scheduler(self, mode="abort", clear_cache=True):
        return super().pause_scheduler(mode, clear_cache)

    @classmethod
    def run(cls, config, calls, theirs):
        theirs.close()  # else the front end's end would be open as long as this process is
        core = cls(config)
        try:
            while True:
                name, args, kwargs = calls.recv()
                if name == "shutdown":
                    return
                try:
                    answer = getattr(core, name)(*args, **kwargs), None
                except Exception as error:
                    answer = None, (error, traceback.format_exc())
                calls.send(answer)
        except (EOFError, OSError):  # the front end is gone
            return
