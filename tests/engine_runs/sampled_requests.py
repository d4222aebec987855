"""Requests of every kind through a real engine, and what it returned for them. Runs in the engine's own interpreter.

    sampled_requests.py JOB OUT

JOB is a file: {"model": folder, "loop": "sync" or "async", "engine_args": {...}}. OUT gets one object a sample: prompt,
ids, logprobs of the sampled tokens (null: not asked for), finish, and whether its reader left before the end.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

PROMPTS = [list(range(5, 15 + prompt)) for prompt in range(6)]
STOP = ["w2"]  # a part of a hundred words of the vocabulary
LEAVER, LEFT_AFTER = 7, 1  # the request, and after how many outputs its reader leaves


def main():
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with contextlib.suppress(Exception):
        # Packed weights are slower to start with, and give nothing here.
        import vllm._custom_ops as operations

        operations._supports_onednn = False
    arguments = {"model": job["model"], "dtype": "float32", "max_model_len": 256, "seed": 0, **job["engine_args"]}
    sampled = in_one_go(arguments) if job["loop"] == "sync" else asyncio.run(as_they_come(arguments))
    Path(sys.argv[2]).write_text(json.dumps(sampled), encoding="utf-8")


def in_one_go(arguments):
    """Sample four of each prompt, then with a stop string, then without logprobs and with a stop token."""
    from vllm import LLM, SamplingParams

    llm = LLM(**arguments)
    asked = [
        SamplingParams(temperature=0.8, max_tokens=12, logprobs=0, n=4, seed=1),
        SamplingParams(temperature=1.0, max_tokens=40, logprobs=1, stop=STOP, seed=2, ignore_eos=True),
        SamplingParams(temperature=1.0, max_tokens=24, stop_token_ids=list(range(200, 240)), seed=3),
    ]
    sampled = []
    for parameters in asked:
        prompts = [{"prompt_token_ids": prompt} for prompt in PROMPTS]
        for output in llm.generate(prompts, parameters, use_tqdm=False):
            sampled += [noted(output.prompt_token_ids, sample) for sample in output.outputs]
    llm.reset_prefix_cache()
    return sampled


async def as_they_come(arguments):
    """Sample twelve requests at once, of all output kinds; the reader of one leaves."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    engine, sampled = engine_of(arguments), []
    kinds = [RequestOutputKind.DELTA, RequestOutputKind.CUMULATIVE, RequestOutputKind.FINAL_ONLY]

    async def one(number, kind, leaves=False, **asked):
        # DELTA brings each token once, the other kinds all that are sampled so far.
        samples, outputs, prompt = {}, 0, PROMPTS[number % 6]
        parameters = SamplingParams(temperature=0.9, logprobs=0, seed=number, output_kind=kind, **asked)
        stream = engine.generate({"prompt_token_ids": prompt}, parameters, f"request-{number}")
        async for output in stream:
            for sample in output.outputs:
                ids, logprobs, _ = (
                    samples.get(sample.index) if kind == kinds[0] and sample.index in samples else ([], [], 0)
                )
                more = with_tokens(sample.logprobs, sample.token_ids)
                samples[sample.index] = (ids + list(sample.token_ids), logprobs + more, sample.finish_reason)
            outputs += 1
            if leaves and outputs == LEFT_AFTER:
                break
        if leaves:
            await stream.aclose()
        for ids, pairs, finish in samples.values():
            logprobs = [held[token].logprob for held, token in pairs]
            sampled.append({"prompt": prompt, "ids": ids, "logprobs": logprobs, "finish": finish, "left": leaves})

    requests = []
    for number in range(12):
        stop = {"stop": STOP} if number % 5 == 4 else {}
        asked = {
            "n": 1 if number % 4 else 4,
            "ignore_eos": True,
            "max_tokens": 200 if number == LEAVER else 10 + number,
            **stop,
        }
        requests.append(one(number, kinds[number % 3], leaves=number == LEAVER, **asked))
    await asyncio.gather(*requests)
    if hasattr(engine, "pause_generation"):
        await engine.pause_generation()
        await engine.resume_generation()
    await engine.reset_prefix_cache()
    await one(12, kinds[1], max_tokens=8)  # when it is finished, the engine knows who left
    if hasattr(engine, "shutdown"):
        engine.shutdown()
    else:
        engine.shutdown_background_loop()
    return sampled


def engine_of(arguments):
    """Return V1's engine, or V0's in this process."""
    from vllm import AsyncEngineArgs, AsyncLLMEngine, envs

    if getattr(envs, "VLLM_USE_V1", True):
        with contextlib.suppress(Exception):  # 0.8.5 decides by the device: V0 on a CPU
            from vllm.v1.engine.async_llm import AsyncLLM

            return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    return AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**arguments))


def noted(prompt, sample):
    """Return a sample as plain data."""
    ids, rows = list(sample.token_ids), sample.logprobs
    held = None if rows is None else [row[token].logprob for row, token in with_tokens(rows, ids)]
    return {"prompt": list(prompt), "ids": ids, "logprobs": held, "finish": sample.finish_reason, "left": False}


def with_tokens(rows, ids):
    """Return each token's logprobs with the token."""
    return list(zip(rows or (), ids))  # noqa: B905 - of an engine's Python, which may be 3.9


if __name__ == "__main__":
    main()
