"""Sampling parameters of requests that a framework makes in code: the model's generation_config.json adds none."""

from rlaudit.configs.draft import Draft
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING


def neutral_sampling(draft: Draft, note: str) -> None:
    """Return what SamplingParams takes for parameters that the framework's code never sets.

    Right only for requests made in code: over HTTP, generation_config.json fills them in.
    """
    for name, value in {**NEUTRAL_SAMPLING, "top_k": -1}.items():
        draft.sampling.unless_set(name, value, note)
