"""Turns prompts and shapes of conversations into token ids. A worker script: see worker.py.

job     model, revision, trust_remote_code, prompts: texts, lists of chat messages, or {"prompt_token_ids"};
        shapes: arguments of apply_chat_template by name, may be left out
result  prompt_token_ids, vocabulary_size (None if all prompts are ids), texts: what the prompts were rendered to, None
        for ids; versions: of transformers and tokenizers;
        shapes: {"token_ids", "text"} or {"error"} by name, none if the model has no chat template

Runs in the trainer's environment, whose ids every engine gets, and in each engine's own, to be compared. Chat messages
go through the model's chat template, texts do not. A template that writes the date writes the same day on every side.
"""

from datetime import datetime

# Templates of Llama 3 and SmolLM3 write today's date. A run that is resumed on another day has rendered the trainer's
# side already, and no release makes that difference.
_DAY = datetime(2025, 1, 1)


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
    rendered = [_rendered(tokenizer, prompt, channel) for prompt in job["prompts"]]
    shapes = job.get("shapes", {}) if tokenizer.chat_template else {}
    return {
        "prompt_token_ids": [token_ids for token_ids, _ in rendered],
        "vocabulary_size": len(tokenizer),
        "texts": [text for _, text in rendered],
        "shapes": {name: _shape(tokenizer, dict(arguments)) for name, arguments in shapes.items()},
        "versions": _versions(),
    }


def _rendered(tokenizer, prompt, channel):
    """Return the ids of one prompt, and its text."""
    if isinstance(prompt, dict):
        return prompt["prompt_token_ids"], None
    if isinstance(prompt, str):
        return [int(token) for token in tokenizer(prompt)["input_ids"]], prompt
    if not tokenizer.chat_template:
        raise channel.Unsupported("the model has no chat template, and the prompts are chat messages")
    return _chat(tokenizer, {"messages": prompt})


def _chat(tokenizer, arguments):
    messages = arguments.pop("messages")
    # An argument replaces the function of that name that transformers gives to templates.
    dated = {"strftime_now": _DAY.strftime} if "strftime_now" in str(tokenizer.chat_template) else {}
    wishes = {"add_generation_prompt": True, **arguments, **dated}
    text = tokenizer.apply_chat_template(messages, tokenize=False, **wishes)
    # The template writes its own special tokens; the tokenizer must not add them again.
    return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]], text


def _shape(tokenizer, arguments):
    """Return a conversation as tokens and text. A template may refuse it: one without tools, or without a system."""
    try:
        token_ids, text = _chat(tokenizer, arguments)
    except Exception as error:  # a template raises what it likes
        return {"error": "%s: %s" % (type(error).__name__, error)}
    return {"token_ids": token_ids, "text": text}


def _versions():
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("transformers", "tokenizers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # it is no installed package
            continue
    return versions
