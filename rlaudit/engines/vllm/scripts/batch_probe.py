"""Whether a request's logprobs depend on what else is in its batch, bit by bit. Loaded by generate.py.

The same request is generated alone and among others, in the engine of the cell and after everything that is measured.
Small on a CPU: batches that differ in size reach other kernels from the first token on, and on two cores it costs a few
seconds of an arm that takes minutes. A GPU computes more in less: on an H200 4 tokens among 16 requests were the same
bit for bit in bfloat16, without VLLM_BATCH_INVARIANT, in four engines out of four (vLLM 0.26.0, 2026-11-26), which
proves little. Python 3.9 syntax.
"""

import math

# Requests and tokens of each.
ON_A_CPU, ON_A_GPU = (16, 4), (64, 64)
# Prompts are cut to this: the question is about kernels, and long contexts would cost more than the measurement.
PROMPT_TOKENS = 16


def probe(device, job, llm, sampling_params_class, row):
    """{"identical", "requests", "tokens", "differs_at", "by"}: the place of the first difference and the largest
    difference (nats) of the logprobs up to and including it. {"error": ...} if the engine would not."""
    requests, tokens = ON_A_CPU if device == "cpu" else ON_A_GPU
    try:
        alone = generated(job, llm, sampling_params_class, row, 1, tokens)[0]
        among = generated(job, llm, sampling_params_class, row, requests, tokens)[0]
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}
    place = next((at for at in range(len(alone["token_ids"])) if step(alone, at) != step(among, at)), None)
    upto = 0 if place is None else place + 1
    apart = [abs(one - other) for one, other in zip(alone["logprobs"][:upto], among["logprobs"][:upto])]
    return {
        "identical": place is None and len(alone["token_ids"]) == len(among["token_ids"]),
        "requests": requests,
        "tokens": len(alone["token_ids"]),
        "differs_at": place,
        "by": max([0.0] + [difference for difference in apart if math.isfinite(difference)]),
    }


def generated(job, llm, sampling_params_class, row, count, tokens):
    """Return rows of the first `count` requests at once; the first is the same for every `count`."""
    # Both times nothing is in the cache: a prompt that is read from it is computed in another batch.
    llm.reset_prefix_cache()
    prompts = job["prompt_token_ids"]
    requests = [{"prompt": at % len(prompts), "sample": at, "round": 0, "seed": at} for at in range(count)]
    wanted = {name: value for name, value in job["sampling"].items() if name != "min_tokens"}
    # A prompt that is cut off may be answered by its end at once: one token would prove little.
    wanted.update(max_tokens=tokens, ignore_eos=True)
    outputs = llm.generate(
        [{"prompt_token_ids": prompts[request["prompt"]][:PROMPT_TOKENS]} for request in requests],
        [
            sampling_params_class(logprobs=job["top_logprobs"], seed=request["seed"], detokenize=False, **wanted)
            for request in requests
        ],
        use_tqdm=False,
    )
    return [row(request, output, job["top_logprobs"]) for request, output in zip(requests, outputs)]


def step(generated_row, at):
    """Return all that was reported of one token; None past the end."""
    if at >= len(generated_row["token_ids"]):
        return None
    return tuple(generated_row[name][at] for name in ("token_ids", "logprobs", "top_ids", "top_logprobs"))
