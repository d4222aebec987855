"""V1's synchronous engine: an output processor, and an engine core here or in a process of its own."""

import itertools
import multiprocessing
import os
from types import SimpleNamespace

from vllm.outputs import RequestOutput
from vllm.v1.engine.core import EngineCore, EngineCoreProc
from vllm.v1.engine.output_processor import OutputProcessor


class Remote:
    """An engine core in another process."""

    def __init__(self, config, method):
        context = multiprocessing.get_context(method)
        self.calls, theirs = context.Pipe()
        ends = (theirs, self.calls)
        self.process = context.Process(target=EngineCoreProc.run, args=(config, *ends), name="EngineCore", daemon=True)
        self.process.start()
        theirs.close()

    def __getattr__(self, name):
        def call(*args, **kwargs):
            self.calls.send((name, args, kwargs))
            result, failed = self.calls.recv()
            if failed:
                raise failed[0]
            return result

        return call

    def shutdown(self):
        self.calls.send(("shutdown", (), {}))
        self.process.join()


class LLMEngine:
    def __init__(self, config):
        self.vllm_config = config
        method = os.environ.get("FAKE_VLLM_CORE")
        self.core = Remote(config, method) if method else EngineCore(config)
        self.output_processor = OutputProcessor()
        self.parents, self.numbers, self.sampled = {}, itertools.count(), None
        for name in ("collective_rpc", "reset_prefix_cache", "sleep", "wake_up"):
            setattr(self, name, getattr(self.core, name))

    def add_request(self, request_id, prompt, parameters):
        names = [request_id] if parameters.n == 1 else [f"{index}_{request_id}" for index in range(parameters.n)]
        parent = SimpleNamespace(request_id=request_id) if parameters.n > 1 else None
        self.parents.update(dict.fromkeys(names, (request_id, prompt, parameters.n)))
        for index, name in enumerate(names):
            request = SimpleNamespace(
                request_id=name,
                prompt_token_ids=prompt,
                sampling_params=parameters,
                index=index,
                cache_salt=None,
                lora_request=None,
            )
            self.output_processor.add_request(request, None, parent, index)
            self.core.add_request(request)

    def abort_request(self, request_ids):
        gone = self.output_processor.abort_requests(request_ids)
        # The core has sampled once more before it hears of it.
        self.sampled = self.core.step()
        self.core.abort_requests(gone)

    def get_num_unfinished_requests(self):
        return len(self.output_processor.request_states)

    def step(self):
        outputs, stamp = self.sampled or self.core.step()
        self.sampled = None
        processed = self.output_processor.process_outputs(outputs, engine_core_timestamp=stamp, iteration_stats=None)
        self.core.abort_requests(processed.reqs_to_abort)
        made = []
        for name, completion in processed.request_outputs:
            request_id, prompt, _ = self.parents[name]
            made.append(RequestOutput(request_id, list(prompt), [completion], completion.finish_reason is not None))
        return made

    def shutdown(self):
        if isinstance(self.core, Remote):
            self.core.shutdown()
