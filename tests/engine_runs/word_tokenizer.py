"""A tokenizer of numbered words, for random models: `w0`, `w1`, ... Every release reads it; stop strings need one."""

import json
from pathlib import Path


def write_tokenizer(model: Path, words: int) -> None:
    """Write the tokenizer beside a model."""
    vocabulary = {f"w{number}": number for number in range(words)}
    document = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"},
    }
    (model / "tokenizer.json").write_text(json.dumps(document))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "w0", "eos_token": "w2", "bos_token": "w1"}
    (model / "tokenizer_config.json").write_text(json.dumps(about))
