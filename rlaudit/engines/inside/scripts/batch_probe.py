"""Checks bit by bit whether a request's logprobs depend on its batch. Loaded by generate.py.

The same request is generated alone and among others, in the engine of the cell and after everything that is measured.
On a CPU the batch is small: batches of other sizes reach other kernels from the first token on, and on two cores it
takes a few seconds of an arm that takes minutes. On a GPU it is larger: on an H200 4 tokens among 16 requests were the
same bit for bit in bfloat16, without VLLM_BATCH_INVARIANT, in four engines out of four (vLLM 0.26.0, 2026-11-26), which
proves little. Python 3.9 syntax.
"""

import math

# Requests and tokens of each.
ON_A_CPU, ON_A_GPU = (16, 4), (64, 64)
# Prompts are cut to this length: the probe is about kernels, and long contexts would cost more than the measurement.
PROMPT_TOKENS = 16


def probe(device, job, llm, sampling_params_class, row):
    """Return {"identical", "requests", "tokens", "differs_at", "by"}, or {"error": ...} if the engine fails.

    differs_at: the place of the first difference. by: the largest difference of logprobs (nats) up to that place.
    """
    requests, tokens = ON_A_CPU if device == "cpu" else ON_A_GPU
    try:
        alone = generated(job, llm, sampling_params_class, row, 1, tokens)[0]
        among = generated(job, llm, sampling_params_class, row, requests, tokens)[0]
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}
    places = range(len(alone["token_ids"]))
    place = next((place for place in places if step(alone, place) != step(among, place)), None)
    upto = 0 if place is None else place + 1
    differences = [abs(first - second) for first, second in zip(alone["logprobs"][:upto], among["logprobs"][:upto])]
    return {
        "identical": place is None and len(alone["token_ids"]) == len(among["token_ids"]),
        "requests": requests,
        "tokens": len(alone["token_ids"]),
        "differs_at": place,
        "by": max([0.0] + [difference for difference in differences if math.isfinite(difference)]),
    }


def generated(job, llm, sampling_params_class, row, count, tokens):
    """Return rows of `count` requests that are generated at once; the first is the same for every `count`."""
    # A prompt that is read from the cache was computed in another batch.
    llm.reset_prefix_cache()
    prompts = job["prompt_token_ids"]
    requests = [
        {"prompt": number % len(prompts), "sample": number, "round": 0, "seed": number} for number in range(count)
    ]
    sampling = {name: value for name, value in job["sampling"].items() if name != "min_tokens"}
    # A prompt that is cut off may be answered with the end-of-sequence token at once, and one token proves little.
    sampling.update(max_tokens=tokens, ignore_eos=True)
    outputs = llm.generate(
        [{"prompt_token_ids": prompts[request["prompt"]][:PROMPT_TOKENS]} for request in requests],
        [
            sampling_params_class(logprobs=job["top_logprobs"], seed=request["seed"], detokenize=False, **sampling)
            for request in requests
        ],
        use_tqdm=False,
    )
    return [row(request, output, job["top_logprobs"]) for request, output in zip(requests, outputs)]


def step(generated_row, place):
    """Return everything that was reported about one token; None past the end."""
    if place >= len(generated_row["token_ids"]):
        return None
    return tuple(generated_row[name][place] for name in ("token_ids", "logprobs", "top_ids", "top_logprobs"))
