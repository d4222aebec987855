"""The offline front end."""

import itertools

from vllm.engine.arg_utils import EngineArgs
from vllm.engine.llm_engine import LLMEngine


class LLM:
    def __init__(self, **arguments):
        self.llm_engine = LLMEngine(EngineArgs(**arguments).create_engine_config())
        self._numbers = itertools.count()

    def generate(self, prompts, parameters, abort=(), prefix="request"):
        """Return finished samples as (prompt, index, ids, logprobs, finish); abort: places of prompts left midway."""
        names = [f"{prefix}-{next(self._numbers)}" for _ in prompts]
        for name, prompt in zip(names, prompts, strict=True):
            self.llm_engine.add_request(name, list(prompt), parameters)
        done = []
        for step in itertools.count():
            if step == 1 and abort:
                self.llm_engine.abort_request([names[place] for place in abort])
            if not self.llm_engine.get_num_unfinished_requests():
                return done
            for output in self.llm_engine.step():
                for sample in output.outputs:
                    if sample.finish_reason is not None:
                        held = (output.prompt_token_ids, sample.index, sample.token_ids, sample.logprobs)
                        done.append((*held, sample.finish_reason))
        return done
