"""Turns prompts into token ids once, so that every engine gets the same ones. A worker script: see worker.py.

job     model, revision, trust_remote_code, prompts: texts, lists of chat messages, or {"prompt_token_ids"}
result  prompt_token_ids, vocabulary_size (None if all prompts are ids)

Runs in the trainer's environment. Chat messages go through the model's chat template, texts do not.
"""


def run(job, channel):
    """Return one list of token ids per prompt."""
    if all(isinstance(prompt, dict) for prompt in job["prompts"]):
        # A model whose prompts are ids may have no tokenizer.
        return {"prompt_token_ids": [prompt["prompt_token_ids"] for prompt in job["prompts"]], "vocabulary_size": None}
    channel.phase("load")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        job["model"], revision=job.get("revision"), trust_remote_code=bool(job.get("trust_remote_code"))
    )
    channel.phase("tokenize")
    return {
        "prompt_token_ids": [token_ids(tokenizer, prompt, channel) for prompt in job["prompts"]],
        "vocabulary_size": len(tokenizer),
    }


def token_ids(tokenizer, prompt, channel):
    """Return the ids of one prompt."""
    if isinstance(prompt, dict):
        return prompt["prompt_token_ids"]
    if isinstance(prompt, str):
        return [int(token) for token in tokenizer(prompt)["input_ids"]]
    if not tokenizer.chat_template:
        raise channel.Unsupported("the model has no chat template, and the prompts are chat messages")
    rendered = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    # The template writes its own special tokens; the tokenizer must not add them again.
    return [int(token) for token in tokenizer(rendered, add_special_tokens=False)["input_ids"]]
