"""What an engine reports of tokens that another one sampled. Loaded by generate.py.

No release lets a caller choose the tokens that it reports on as it samples. So each recorded token is asked for by
itself: what stood before it is the prompt, one token is sampled, and the recorded one is looked up among the most
probable ones, which are reported as sampled ones are (raw or processed), which prompt logprobs are not. Its
keys and values come from a prefill, where the recorded ones came from decoding. Python 3.9 syntax.
"""

MOST_REPORTED = 20


def logprobs_of(asked, job, llm, sampling_params_class):
    """Return the logprob of each token, null where it is not among the most probable.

    asked: [{"prompt_token_ids": what stood before it, "token"}].
    """
    allowed = llm.llm_engine.vllm_config.model_config.max_logprobs
    most = MOST_REPORTED if allowed < 0 else min(MOST_REPORTED, allowed)
    wanted = {name: value for name, value in job["sampling"].items() if name not in ("min_tokens", "ignore_eos")}
    wanted.update(max_tokens=1)
    outputs = llm.generate(
        [{"prompt_token_ids": one["prompt_token_ids"]} for one in asked],
        [sampling_params_class(logprobs=most, seed=number, detokenize=False, **wanted) for number in range(len(asked))],
        use_tqdm=False,
    )
    found = (output.outputs[0].logprobs[0].get(one["token"]) for one, output in zip(asked, outputs))
    return [None if entry is None else entry.logprob for entry in found]
