"""Engine arguments that a framework hands to `LLM(...)` or `AsyncEngineArgs(...)` as they are written.

Nothing is serialized on this way: False stays False, null stays None, and a name that the class does not have is an
error at start-up where the call is a plain one.
"""

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING


def hand_over(draft: Draft, kwargs: Node | None, note: str = "") -> None:
    """Every key of a mapping as the engine argument of that name."""
    for key, node in entries(kwargs):
        draft.engine.by_file(key, node, note=note)


def has_argument(name: str, vllm: Version) -> bool:
    """Whether this vLLM release has an engine argument of that name."""
    from rlaudit.vllm.catalogue import Catalogue

    return name in Catalogue.at(vllm).engine


def neutral_sampling(draft: Draft, note: str) -> None:
    """What SamplingParams takes for parameters that the framework's code never sets.

    Said where requests are made in code and not over HTTP: no generation_config.json gets in between.
    """
    for name, value in {**NEUTRAL_SAMPLING, "top_k": -1}.items():
        draft.sampling.unless_set(name, value, note)
