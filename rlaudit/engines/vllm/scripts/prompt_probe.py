"""Checks what prompt logprobs mean: whether they hold the temperature, as sampled ones may. Loaded by generate.py.

Trainers send a finished sequence as a prompt to get old or reference logprobs of its tokens. So do these requests: one
at the temperature of the job and one at temperature 1, each for a few sequences that the engine sampled before. A
release that leaves the temperature out answers both alike. Python 3.9 syntax.
"""

# Of different prompts, for an interval; a prefill each.
SEQUENCES = 16


def probe(rows, job, llm, sampling_params_class):
    """Return {"sequences": [{"tokens", "by_temperature", "from_sampled"}]}, or {"error": ...} if the engine refuses.

    by_temperature, from_sampled: sums of absolute differences of logprobs in nats over the tokens of a completion,
    between the two temperatures, and from what was reported when the tokens were sampled. Empty at temperature 1.
    """
    if job["sampling"].get("temperature", 1.0) == 1.0:
        return {}
    first = {row["prompt"]: row for row in reversed(rows) if row["token_ids"]}
    chosen = [first[prompt] for prompt in sorted(first)[:SEQUENCES]]
    try:
        heated = prompt_logprobs(chosen, job, llm, sampling_params_class, job["sampling"]["temperature"])
        plain = prompt_logprobs(chosen, job, llm, sampling_params_class, 1.0)
    except Exception as error:
        return {"error": " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]}
    sequences = [
        {
            "tokens": len(row["token_ids"]),
            "by_temperature": distance(at_temperature, at_one),
            "from_sampled": distance(at_temperature, row["logprobs"]),
        }
        for row, at_temperature, at_one in zip(chosen, heated, plain)
    ]
    return {"sequences": sequences}


def prompt_logprobs(rows, job, llm, sampling_params_class, temperature):
    """Return for each row the prompt logprobs of its completion, with the filters and penalties of the job."""
    sampling = {name: value for name, value in job["sampling"].items() if name not in ("min_tokens", "ignore_eos")}
    sampling.update(max_tokens=1, temperature=temperature, prompt_logprobs=1, detokenize=False)
    outputs = llm.generate(
        [{"prompt_token_ids": [*job["prompt_token_ids"][row["prompt"]], *row["token_ids"]]} for row in rows],
        [sampling_params_class(seed=number, **sampling) for number in range(len(rows))],
        use_tqdm=False,
    )
    return [
        [step[token].logprob for token, step in zip(ids, output.prompt_logprobs[-len(ids) :])]
        for ids, output in zip([row["token_ids"] for row in rows], outputs)
    ]


def distance(first, second):
    """Return the sum of absolute differences."""
    return sum(abs(one - other) for one, other in zip(first, second))
