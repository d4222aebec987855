"""A stand-in for transformers, as far as the tokenizing script goes: words become tokens of the known model."""

from importlib.metadata import PackageNotFoundError, version

import known_model


class AutoTokenizer:
    """Splits at spaces."""

    chat_template = "one role and one content a message"

    @classmethod
    def from_pretrained(cls, model, revision=None, trust_remote_code=False):
        """A tokenizer, whatever the model."""
        return cls()

    def __len__(self):
        return known_model.VOCABULARY

    def __call__(self, text, add_special_tokens=True):
        """Token ids of a text."""
        return {"input_ids": [known_model.token_of(word) for word in text.split()]}

    def apply_chat_template(self, messages, add_generation_prompt, tokenize, tools=None, continue_final_message=False):
        """The messages as one text. A message DATED has the release of vLLM beside it, as no template should."""
        return " ".join(f"{message['role']} {_dated(message['content'])}" for message in messages)


def _dated(content):
    try:
        return content.replace("DATED", version("vllm")) if isinstance(content, str) else content
    except PackageNotFoundError:
        return content
