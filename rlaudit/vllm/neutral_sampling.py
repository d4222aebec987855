"""What vLLM's SamplingParams takes for a parameter that is not set: the distribution stays the model's own."""

from typing import Any

# top_k: 0 stands for none, however a release spells that (-1 or 0).
NEUTRAL_SAMPLING: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
# More tokens than any published model has (some 260,000). A top_k of the vocabulary's size or above cuts nothing off
# (vllm/v1/worker/gpu_input_batch.py); 1,000,000 and 100,000,000 are ways to write none.
ABOVE_ANY_VOCABULARY = 500_000


def keeps_every_token(top_k: Any) -> bool:
    """Return whether a top_k cuts nothing off, for any model."""
    return top_k in (-1, 0) or (isinstance(top_k, int | float) and top_k >= ABOVE_ANY_VOCABULARY)
