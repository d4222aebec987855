"""The logprobs that an engine reports for tokens that another one sampled. Loaded by generate.py.

No release lets a caller choose the tokens whose logprobs it reports. So there is one request for each recorded token:
the prompt is what stood before it, one token is sampled, and the recorded token is looked up among the most probable
ones. These are reported as sampled ones are (raw or processed); prompt logprobs are not. The keys and values come from
a prefill, and those of the recorded token came from decoding. Python 3.9 syntax.
"""

MOST_REPORTED = 20


def logprobs_of(tokens, job, llm, sampling_params_class):
    """Return the logprob of each token, None if it is not among the most probable.

    tokens: [{"prompt_token_ids": what stood before it, "token"}].
    """
    allowed = llm.llm_engine.vllm_config.model_config.max_logprobs
    reported = MOST_REPORTED if allowed < 0 else min(MOST_REPORTED, allowed)
    sampling = {name: value for name, value in job["sampling"].items() if name not in ("min_tokens", "ignore_eos")}
    sampling.update(max_tokens=1, logprobs=reported, detokenize=False)
    outputs = llm.generate(
        [{"prompt_token_ids": token["prompt_token_ids"]} for token in tokens],
        [sampling_params_class(seed=number, **sampling) for number in range(len(tokens))],
        use_tqdm=False,
    )
    entries = (output.outputs[0].logprobs[0].get(token["token"]) for token, output in zip(tokens, outputs))
    return [None if entry is None else entry.logprob for entry in entries]
