"""A random two-layer Llama with a real tokenizer, for trainings on text: a checkpoint that is made without torch."""

import json
import shutil
from pathlib import Path

import numpy as np

from rlaudit.engines.vllm.scripts import tiny_model

# Logits of deviation 2.4 for a normalised hidden state: peaked enough that a temperature of 0.7 moves the logprobs.
HEAD_DEVIATION = 2.4 * tiny_model.HIDDEN**-0.5
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")


def write_tiny_llama(tokenizer: Path, folder: Path, seed: int = 0) -> Path:
    """Write the checkpoint in float32 with the tokenizer of another one."""
    folder.mkdir()
    for file in TOKENIZER:
        shutil.copy(tokenizer / file, folder)
    vocabulary = json.loads((tokenizer / "config.json").read_text())["vocab_size"]
    configuration = {**tiny_model.configuration(0), "vocab_size": vocabulary}
    (folder / "config.json").write_text(json.dumps(configuration))
    generator, weights = np.random.default_rng(seed), {}
    for name, shape in tiny_model.shapes(0).items():
        sizes = [vocabulary if size == tiny_model.VOCABULARY else size for size in shape]
        deviation = HEAD_DEVIATION if name == "lm_head.weight" else sizes[-1] ** -0.5
        normal = generator.standard_normal(sizes, dtype=np.float32) * np.float32(deviation)
        weights[name] = np.ones(sizes, np.float32) if len(sizes) == 1 else normal
    _write_safetensors(weights, folder / "model.safetensors")
    return folder


def _write_safetensors(weights: dict[str, np.ndarray], path: Path) -> None:
    """Write the format's own layout: the header's length in 8 bytes, the header in JSON, the numbers."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, weight in weights.items():
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [end, end + weight.nbytes]}
        end += weight.nbytes
    written = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(written).to_bytes(8, "little") + written)
        file.writelines(np.ascontiguousarray(weight).tobytes() for weight in weights.values())
