"""Sampling parameters of requests that a framework makes in code: no generation_config.json gets in between."""

from rlaudit.configs.draft import Draft
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING


def neutral_sampling(draft: Draft, note: str) -> None:
    """What SamplingParams takes for parameters that the framework's code never sets.

    Said where requests are made in code and not over HTTP: no generation_config.json gets in between.
    """
    for name, value in {**NEUTRAL_SAMPLING, "top_k": -1}.items():
        draft.sampling.unless_set(name, value, note)
