"""A training over the stand-in for vLLM that dies in the middle of a step. Its workers compute batches, as vLLM's do.

    dying.py WHO HOW SEEN [STEPS [ROUNDS]]

WHO: "front end" dies when it has processed so many steps, "engine core" when it begins its batch of that number, "none"
ends in order. HOW: "SIGSEGV" and "SIGKILL" are sent; "null pointer" reads one; "error" raises. SEEN: a file that gets a
line for each step: what the front end was given, by request.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import rlaudit_weights
import vllm

# It reads weights, which needs torch.
rlaudit_weights._step_begins = lambda call: None

from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.worker_classes import Worker  # noqa: E402

PROMPTS = 6
BEGAN = os.getpid()


def die(how):
    if how == "null pointer":
        ctypes.string_at(0)
    elif how == "error":
        raise RuntimeError("a kernel failed with hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")
    else:
        os.kill(os.getpid(), getattr(signal, how))


def compute(who, how, steps):
    """Have workers compute before each step, and the engine core die in one."""
    computed = [0]

    def execute_model(self, scheduler_output):
        computed[0] += 1
        if who == "engine core" and computed[0] == steps:
            die(how)

    Worker.execute_model = execute_model
    if vllm.IS_V1:
        from vllm.v1.engine.core import EngineCore as Engine
    else:
        from vllm.engine.llm_engine import LLMEngine as Engine
    step = Engine.step

    def step_of_a_worker(self):
        if vllm.IS_V1:
            tokens = {name: len(held.steps[0]) for name, held in self.scheduler.requests.items()}
            given = SimpleNamespace(num_scheduled_tokens=tokens)
        else:
            tokens = {name: len(group.seqs[0].steps[0]) for name, group in self.groups.items()}
            groups = [SimpleNamespace(request_id=name, token_chunk_size=count) for name, count in tokens.items()]
            given = SimpleNamespace(seq_group_metadata_list=groups)
        self.wrapper.worker.execute_model(given)
        return step(self)

    Engine.step = step_of_a_worker


def note(seen, who, how, steps):
    """Write down what the front end of V1 is given, and have it die behind a step."""
    from vllm.v1.engine.output_processor import OutputProcessor

    process_outputs = OutputProcessor.process_outputs
    given = [0]

    def noting(self, outputs, *arguments, **named):
        row = {
            one.request_id: [one.new_token_ids, one.new_logprobs and [row[0] for row in one.new_logprobs.logprobs]]
            for one in outputs
        }
        result = process_outputs(self, outputs, *arguments, **named)
        seen.write(json.dumps(row) + "\n")
        seen.flush()
        given[0] += 1
        if who == "front end" and given[0] == steps and os.getpid() == BEGAN:
            die(how)
        return result

    OutputProcessor.process_outputs = noting


def main(who, how, seen, steps="9", rounds="3"):
    compute(who, how, int(steps))
    with Path(seen).open("w") as file:
        if vllm.IS_V1:
            note(file, who, how, int(steps))
        llm = vllm.LLM(model="a-model")
        try:
            for number in range(int(rounds)):
                prompts = [[number, prompt, 2, 3] for prompt in range(PROMPTS)]
                llm.generate(prompts, SamplingParams(n=4, max_tokens=12, logprobs=0, seed=number))
                llm.llm_engine.collective_rpc("reload_weights")
        except (EOFError, OSError, RuntimeError):  # the engine core is gone
            sys.exit(3)
        if hasattr(llm.llm_engine, "shutdown"):
            llm.llm_engine.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
