"""Checks what prompt logprobs mean: whether they hold the temperature, as sampled ones may. Loaded by generate.py.

Trainers send a finished sequence as a prompt to get old or reference logprobs of its tokens. So do these requests: one
at the temperature of the job and one at temperature 1, each for a few sequences that the engine sampled before. A
release that leaves the temperature out answers both alike. Python 3.9 syntax.
"""

import math

# Of different prompts, for an interval; a prefill each.
SEQUENCES = 16
# Tokens of a prompt with its completion: an engine holds the logits of a whole prompt at once, a row of the vocabulary
# for each token. Longer ones are left out.
LONGEST = 512
# vLLM samples greedily below, and no temperature is left to be seen (_SAMPLING_EPS).
GREEDY_BELOW = 1e-5


def probe(rows, job, llm, sampling_params_class):
    """Return {"sequences": [{"tokens", "by_temperature", "from_sampled"}]}, or {"error": ...} if the engine refuses.

    by_temperature, from_sampled: sums of absolute differences of logprobs in nats over the tokens of a completion,
    between the two temperatures, and from what was reported when the tokens were sampled. Empty at temperatures 1 and
    0, and if all sequences are long.
    """
    temperature = job["sampling"].get("temperature", 1.0)
    if temperature == 1.0 or temperature < GREEDY_BELOW:
        return {}
    prompts = job["prompt_token_ids"]
    short = [row for row in rows if row["token_ids"] and len(prompts[row["prompt"]]) + len(row["token_ids"]) <= LONGEST]
    first = {row["prompt"]: row for row in reversed(short)}
    chosen = [first[prompt] for prompt in sorted(first)[:SEQUENCES]]
    try:
        heated = prompt_logprobs(chosen, job, llm, sampling_params_class, temperature)
        plain = prompt_logprobs(chosen, job, llm, sampling_params_class, 1.0)
    except Exception as error:
        return {"error": " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]}
    sequences = [compared(*logprobs) for logprobs in zip(heated, plain, (row["logprobs"] for row in chosen))]
    return {"sequences": [sequence for sequence in sequences if sequence["tokens"]]}


def prompt_logprobs(rows, job, llm, sampling_params_class, temperature):
    """Return for each row the prompt logprobs of its completion, with the filters and penalties of the job."""
    sampling = {name: value for name, value in job["sampling"].items() if name not in ("min_tokens", "ignore_eos")}
    sampling.update(max_tokens=1, temperature=temperature, prompt_logprobs=1, detokenize=False)
    outputs = llm.generate(
        [{"prompt_token_ids": [*job["prompt_token_ids"][row["prompt"]], *row["token_ids"]]} for row in rows],
        # Without a seed: in 0.10.2 on a CPU a seeded request whose prompt is chunked ends the engine.
        [sampling_params_class(**sampling) for _ in rows],
        use_tqdm=False,
    )
    return [
        [step[token].logprob for token, step in zip(ids, output.prompt_logprobs[-len(ids) :])]
        for ids, output in zip([row["token_ids"] for row in rows], outputs)
    ]


def compared(heated, plain, sampled):
    """Return the sums of one completion, over the tokens whose logprobs are finite everywhere.

    V0 reports -inf for a token that its filters exclude under the temperature of the job.
    """
    tokens = [token for token in zip(heated, plain, sampled) if all(map(math.isfinite, token))]
    return {
        "tokens": len(tokens),
        "by_temperature": sum(abs(at_temperature - at_one) for at_temperature, at_one, _ in tokens),
        "from_sampled": sum(abs(at_temperature - drawn) for at_temperature, _, drawn in tokens),
    }
