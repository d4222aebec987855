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


def of_own(rows, most, job, llm, sampling_params_class):
    """Ask an engine for tokens that it has sampled itself: how far a prefill's logprobs are from those of decoding.

    most: of the tokens, spread over rows. Return [{"prompt", "sample", "decoded", "prefilled"}].
    """
    # Blocks that decoding filled would be read, and the two be alike for that.
    llm.reset_prefix_cache()
    places = [(row, place) for row in rows for place in range(len(row["token_ids"]))]
    chosen = places[:: max(1, -(-len(places) // max(1, most)))]
    asked = [
        {
            "prompt_token_ids": [*job["prompt_token_ids"][row["prompt"]], *row["token_ids"][:place]],
            "token": row["token_ids"][place],
        }
        for row, place in chosen
    ]
    prefilled = logprobs_of(asked, job, llm, sampling_params_class)
    return [
        {"prompt": row["prompt"], "sample": row["sample"], "decoded": row["logprobs"][place], "prefilled": logprob}
        for (row, place), logprob in zip(chosen, prefilled)
    ]
