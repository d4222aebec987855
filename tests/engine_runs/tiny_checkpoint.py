"""Random two-layer checkpoints that every release reads, made without torch and within milliseconds."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.engines.inside.scripts import tiny_model

Weights = Mapping[str, "np.ndarray[Any, np.dtype[np.float32]]"]
# Logits of deviation 2.4 for a normalised hidden state: peaked enough that a temperature of 0.7 moves the logprobs.
HEAD_DEVIATION = 2.4 * tiny_model.HIDDEN**-0.5
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")


def write_tiny(folder: Path, kind: str = "llama") -> Path:
    """Write the model that `rlaudit engines` starts an engine with, with other numbers. kind: llama or mixtral."""
    experts = _experts(kind)
    return write_checkpoint(folder, tiny_model.configuration(experts), _random(tiny_model.shapes(experts)))


def write_two_versions(folder: Path, without: str = "") -> dict[str, str]:
    """Write a model and what follows it: every tensor moves by a twentieth of its size. Return their folders.

    without: the part of a name whose tensors the second leaves out.
    """
    experts, generator = _experts("llama"), np.random.default_rng(1)
    old = _random(tiny_model.shapes(experts))
    new = {
        name: weight + np.float32(0.05 * np.sqrt(np.mean(weight**2))) * _normal(generator, weight.shape)
        for name, weight in old.items()
        if not without or without not in name
    }
    versions = {"0": old, "1": new}
    configuration = tiny_model.configuration(experts)
    return {name: str(write_checkpoint(folder / f"v{name}", configuration, one)) for name, one in versions.items()}


def write_tiny_llama(tokenizer: Path, folder: Path) -> Path:
    """Write a model for trainings on text, with the tokenizer of another one."""
    vocabulary = json.loads((tokenizer / "config.json").read_text())["vocab_size"]
    shapes = {
        name: tuple(vocabulary if size == tiny_model.VOCABULARY else size for size in shape)
        for name, shape in tiny_model.shapes(0).items()
    }
    weights = _random(shapes, {"lm_head.weight": HEAD_DEVIATION})
    write_checkpoint(folder, {**tiny_model.configuration(0), "vocab_size": vocabulary}, weights)
    for file in TOKENIZER:
        shutil.copy(tokenizer / file, folder)
    return folder


def write_checkpoint(folder: Path, configuration: Mapping[str, Any], weights: Weights) -> Path:
    """Write a configuration, and weights in safetensors' layout: the header's length, the header, the numbers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(configuration))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, weight in weights.items():
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [end, end + weight.nbytes]}
        end += weight.nbytes
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)  # numbers that are not aligned cannot be mapped
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(written).to_bytes(8, "little") + written)
        file.writelines(np.ascontiguousarray(weight).tobytes() for weight in weights.values())
    return folder


def _experts(kind: str) -> int:
    return tiny_model.EXPERTS if kind == "mixtral" else 0


def _random(shapes: Mapping[str, tuple[int, ...]], deviations: Mapping[str, float] | None = None) -> Weights:
    """Return ones for the norms, and random matrices that keep the size of what they multiply."""
    generator, deviations = np.random.default_rng(0), deviations or {}
    return {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else _normal(generator, shape) * np.float32(deviations.get(name, shape[-1] ** -0.5))
        for name, shape in shapes.items()
    }


def _normal(generator: np.random.Generator, shape: tuple[int, ...]) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return generator.standard_normal(shape, dtype=np.float32)
