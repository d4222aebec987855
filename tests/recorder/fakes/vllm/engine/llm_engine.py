"""V0's engine. Releases without it have V1's under this name."""

import enum
from types import SimpleNamespace

from vllm import IS_V1

if IS_V1:
    from vllm.v1.engine.llm_engine import LLMEngine
else:
    from vllm.outputs import RequestOutput
    from vllm.sampled import in_steps, stops, tokens_of
    from vllm.worker.worker_base import WorkerWrapperBase

    class SequenceStatus(enum.Enum):
        RUNNING = 0
        FINISHED_STOPPED = 1
        FINISHED_LENGTH_CAPPED = 2
        FINISHED_ABORTED = 3

    class Sequence:
        def __init__(self, prompt, pairs, index):
            self.prompt_token_ids, self.steps = prompt, in_steps(prompt, index, pairs)
            self.ids, self.output_logprobs = [], []
            self.status, self.stop_reason = SequenceStatus.RUNNING, None
            self.data = SimpleNamespace(get_num_cached_tokens=lambda: len(prompt) // 2)

        def get_output_len(self):
            return len(self.ids)

        def get_output_token_ids(self):
            return tuple(self.ids)

    class SequenceGroup:
        def __init__(self, request_id, seqs, sampling_params):
            self.request_id, self.seqs, self.sampling_params = request_id, seqs, sampling_params
            self.lora_request, self.multi_modal_data = None, {}

        def is_finished(self):
            return all(sequence.status is not SequenceStatus.RUNNING for sequence in self.seqs)

    class LLMEngine:
        def __init__(self, config):
            self.wrapper = WorkerWrapperBase(config)
            self.wrapper.init_device()
            self.wrapper.worker.load_model()
            self.groups, self.parents = {}, {}

        def get_num_unfinished_requests(self):
            return len(self.groups)

        def add_request(self, request_id, prompt, parameters):
            if parameters.n == 1:
                self._add(request_id, prompt, parameters, 0)
                return
            children = [f"{request_id}_parallel_sample_{index}" for index in range(parameters.n)]
            added = [self._add(child, prompt, parameters, index) for index, child in enumerate(children)]
            parent = SequenceGroup(request_id, [group.seqs[0] for group in added], parameters)
            parent.to_be_finished = set(children)
            self.parents.update(dict.fromkeys(children, parent))

        def _add(self, request_id, prompt, parameters, index):
            sequence = Sequence(prompt, tokens_of(prompt, index, parameters), index)
            self.groups[request_id] = group = SequenceGroup(request_id, [sequence], parameters)
            return group

        def abort_request(self, request_id):
            named = {request_id} if isinstance(request_id, str) else set(request_id)
            for name in list(self.groups):
                if name in named or name.rpartition("_parallel_sample_")[0] in named:
                    self.groups.pop(name).seqs[0].status = SequenceStatus.FINISHED_ABORTED

        def step(self):
            outputs = []
            for name, group in list(self.groups.items()):
                sequence, asked = group.seqs[0], group.sampling_params
                for token, logprob in sequence.steps.pop(0):
                    sequence.ids.append(token)
                    sequence.output_logprobs.append({token: SimpleNamespace(logprob=logprob)})
                    if stops(token, asked):
                        sequence.status, sequence.stop_reason = SequenceStatus.FINISHED_STOPPED, asked.stop[0]
                        break
                if not sequence.steps and sequence.status is SequenceStatus.RUNNING:
                    sequence.status = SequenceStatus.FINISHED_LENGTH_CAPPED
                outputs.append(RequestOutput.from_seq_group(group, False, self.parents))
                if group.is_finished():
                    del self.groups[name]
            return [output for output in outputs if output is not None]

        def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
            return [getattr(self.wrapper.worker, method)(*args, **(kwargs or {}))]

        def reset_prefix_cache(self):
            return not self.groups

        def sleep(self, level=1):
            self.wrapper.worker.sleep(level)

        def wake_up(self, tags=None):
            self.wrapper.worker.wake_up(tags)
