"""Recorded sampling parameters as the distribution they make: what `compare` can judge at once, and what it cannot.

Requests differ in seeds, lengths and stop strings, which change no probability. What does and is no meaning of a
logprob here (a mask, a grammar) keeps its sequences apart from those without it. So does a bias whose token ids are
hashed in the recording or not all in it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# As vLLM calls them and as `compare` does.
MEANINGS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
BIAS = "logit_bias"
# The recorder keeps so many entries of a table, and does not say that there were more.
MOST_RECORDED = 500
# Each changes which tokens are sampled, in some release from 0.8.5 to 0.33.0 (vllm/sampling_params.py).
OTHERS = (
    "allowed_token_ids",
    "bad_words",
    "extra_args",
    "guided_decoding",
    "logits_processors",
    "min_tokens",
    "structured_outputs",
    "thinking_token_budget",
    "repetition_detection",
)


@dataclass(frozen=True)
class SamplingGroup:
    """Equal parameters."""

    # A JSON object of those of MEANINGS and of the bias.
    meanings: str
    # Of those that are in use and have no meaning here.
    others: str
    # What the engine was started with, in a recording of engines with several; "" in others.
    model: str = ""

    def values(self) -> dict[str, Any]:
        """Return the parameters that `compare` takes."""
        values: dict[str, Any] = json.loads(self.meanings)
        return values

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token was taken, so that there is no distribution to judge."""
        temperature = self.values().get("temperature")
        return isinstance(temperature, int | float) and temperature <= 0

    def __str__(self) -> str:
        parameters = {**self.values(), **json.loads(self.others)}
        shown = ", ".join(f"{name}={value}" for name, value in parameters.items() if not _is_off(name, value))
        return f"{shown} by the model {self.model}" if self.model else shown


def sampling_group(parameters: Mapping[str, Any], model: str = "") -> SamplingGroup:
    """Return the group of recorded parameters. 0 and -1 both are no top-k."""
    meanings = {name: parameters[name] for name in MEANINGS if parameters.get(name) is not None}
    if isinstance(meanings.get("top_k"), int):
        meanings["top_k"] = max(0, meanings["top_k"])
    others = {name: parameters[name] for name in (BIAS, *OTHERS) if parameters.get(name)}
    if _is_whole_bias(others.get(BIAS)):
        meanings[BIAS] = others.pop(BIAS)
    return SamplingGroup(_json(meanings), _json(others), model)


def _is_whole_bias(value: Any) -> bool:
    """Return whether it says for each token id what is added to its logit."""
    if not isinstance(value, Mapping) or not 0 < len(value) < MOST_RECORDED:
        return False
    return all(
        token.isdecimal() and isinstance(added, int | float) and math.isfinite(added) for token, added in value.items()
    )


def _is_off(name: str, value: Any) -> bool:
    return name != "temperature" and value == (1 if name in ("top_p", "repetition_penalty") else 0)


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)
