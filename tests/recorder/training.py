"""A training over the stand-in for vLLM, which touches every hook. It prints all that it was given.

training.py [steps [prompts]]
"""

import json
import sys
from contextlib import suppress

PROMPT_LENGTH = 10


def main(steps=3, prompts=6):
    import vllm

    # Loaded by V0 and V1 alike; a training may import both.
    import vllm.engine.llm_engine
    import vllm.outputs
    import vllm.v1.engine.output_processor
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.worker_classes import SHAPES, Tensor

    llm = vllm.LLM(model="a-model", seed=7)
    engine = llm.llm_engine
    for step in range(steps):
        asked = [list(range(step * 100 + prompt, step * 100 + prompt + PROMPT_LENGTH)) for prompt in range(prompts)]
        say("four of each", llm.generate(asked, SamplingParams(n=4, max_tokens=12, logprobs=0, seed=step)))
        say("stop", llm.generate(asked, SamplingParams(max_tokens=30, logprobs=1, stop=("w5",), seed=step + 1)))
        say("no logprobs", llm.generate(asked, SamplingParams(max_tokens=5, seed=step + 2)))
        say("abort", llm.generate(asked, SamplingParams(n=2, max_tokens=40, seed=step + 3), abort=[0, prompts - 1]))
        engine.sleep(level=1)
        engine.wake_up(tags=["weights"])
        for name, shape in SHAPES.items():
            say("update", engine.collective_rpc("update_weight", kwargs={"name": name, "dtype": "x", "shape": shape}))
        say("reset", engine.reset_prefix_cache())
        if vllm.IS_V1:
            front_end = AsyncLLM(engine.core)
            to_its_end(front_end.pause_generation(mode="keep", clear_cache=False))
            say("reload", sorted(engine.collective_rpc("reload_weights")[0]))
            to_its_end(front_end.resume_generation())
        # In one process, as TRL does, past every call of the engine's.
        held = engine if not vllm.IS_V1 else engine.core
        if "wrapper" in vars(held):
            model = held.wrapper.worker.get_model()
            for _ in range(2):
                for name, shape in SHAPES.items():
                    say("load", sorted(model.load_weights([(name, Tensor(shape))])))
    try:
        engine.collective_rpc("update_weight", kwargs={"name": "embed.weight", "dtype": "x", "shape": (1, 1)})
    except ValueError as error:
        say("refused", str(error))
    if hasattr(engine, "shutdown"):
        engine.shutdown()


def to_its_end(coroutine):
    """Run a coroutine that waits for nothing: to import asyncio takes longer than the training."""
    with suppress(StopIteration):
        while True:
            coroutine.send(None)


def say(what, given):
    print(json.dumps([what, given], default=str), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
