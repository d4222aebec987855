"""The context length: written, or taken from the checkpoint."""

from collections.abc import Mapping
from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.checkpoint import checkpoint_file
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, number

_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions",
    "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip


def apply(view: Resolution) -> Resolved | None:
    """Return the checkpoint's length if the config gives none, or has vLLM choose one that fits the memory."""
    given = view.given("max_model_len")
    if isinstance(given, Unknown) or (number(given) or 0) > 0:
        return None
    if given is not None:
        return Resolved(Unknown("vLLM chooses the longest context that fits the memory"), "automatic", overrules=True)
    checkpoint = view.checkpoint or {}
    lengths = [checkpoint[key] for key in _KEYS if isinstance(checkpoint.get(key), int)]
    if view.since("0.9.2"):
        tokenizer = checkpoint_file(view.config, "tokenizer_config.json") or {}
        lengths += [length for length in [tokenizer.get("model_max_length")] if isinstance(length, int)]
    if any(isinstance(checkpoint.get(key), int) for key in _KEYS) and not _scales_positions(checkpoint):
        return Resolved(min(lengths), "the checkpoint's own length")
    return Resolved(
        Unknown("the checkpoint sets max_model_len, and the checkpoint is not here"), "taken from the checkpoint"
    )


def _scales_positions(checkpoint: Mapping[str, Any]) -> bool:
    """Return whether rotary positions are scaled: each kind of scaling lengthens the context by its own rule."""
    written = checkpoint.get("rope_scaling") or checkpoint.get("rope_parameters")
    return isinstance(written, dict) and written.get("rope_type", written.get("type")) not in (
        None,
        "default",
        "llama3",
    )


RESOLUTION = ResolutionRule(
    "max_model_len",
    (
        Function("vllm/config.py", "_get_and_verify_max_len"),
        Function("vllm/config/__init__.py", "_get_and_verify_max_len"),
        Function("vllm/config/model.py", "_get_and_verify_max_len"),
    ),
    apply,
)
