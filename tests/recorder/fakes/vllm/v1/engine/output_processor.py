"""The front end's side of a request (vllm/v1/engine/output_processor.py of 0.18.1)."""

import dataclasses
from types import SimpleNamespace

from vllm.outputs import CompletionOutput
from vllm.sampled import stops


@dataclasses.dataclass
class OutputProcessorOutput:
    request_outputs: list
    reqs_to_abort: list


class OutputProcessor:
    def __init__(self):
        self.request_states = {}

    def add_request(self, request, prompt, parent_req=None, request_index=0, queue=None):
        self.request_states[request.request_id] = SimpleNamespace(
            request=request,
            parent_req=parent_req,
            request_index=request_index,
            detokenizer=SimpleNamespace(output_token_ids=[]),
            logprobs=None if request.sampling_params.logprobs is None else [],
        )

    def process_outputs(self, engine_core_outputs, engine_core_timestamp=None, iteration_stats=None):
        outputs, to_abort = [], []
        for output in engine_core_outputs:
            state = self.request_states.get(output.request_id)
            if state is None:  # aborted meanwhile
                continue
            seen, asked = state.detokenizer.output_token_ids, state.request.sampling_params
            assert (state.logprobs is None) == (output.new_logprobs is None), "logprobs that nobody asked for"
            reason = output.finish_reason
            for place, token in enumerate(output.new_token_ids):
                seen.append(token)
                if state.logprobs is not None:
                    state.logprobs.append(output.new_logprobs.logprobs[place][0])
                if stops(token, asked):
                    if reason is None:
                        to_abort.append(output.request_id)
                    reason = "stop"
                    break
            if reason is not None:
                del self.request_states[output.request_id]
            logprobs = None if state.logprobs is None else list(state.logprobs)
            outputs.append((output.request_id, CompletionOutput(state.request_index, list(seen), logprobs, reason)))
        return OutputProcessorOutput(outputs, to_abort)

    def abort_requests(self, request_ids):
        gone = []
        for request in request_ids:
            children = [
                name
                for name, state in self.request_states.items()
                if getattr(state.parent_req, "request_id", None) == request
            ]
            if children:
                gone += self.abort_requests(children)
            elif self.request_states.pop(request, None) is not None:
                gone.append(request)
        return gone
