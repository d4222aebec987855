"""What vLLM's SamplingParams takes for a parameter that nobody sets: the distribution stays the model's own."""

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
