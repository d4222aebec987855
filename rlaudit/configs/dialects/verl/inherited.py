"""Engine arguments in the config of a copy of verl itself that stop the engine, because the vLLM release lacks them.

What the user writes is judged as a setting. What stands in the copy's own config is its word, as a literal in its code
is: `engine_kwargs.vllm.disable_mm_preprocessor_cache: False` in verl 0.5.0 trainer/config/rollout/rollout.yaml:89.
"""

from collections.abc import Iterable, Iterator

from packaging.version import Version

from rlaudit.configs.dialects.verl.release import Release
from rlaudit.configs.draft import arriving
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.rollout_config import Stop
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.removed import removed

# LLM(...) takes this one and warns.
_ONLY_WARNS = "swap_space"


def stops_by_inherited(kwargs: Iterable[tuple[str, Node]], vllm: Version, release: Release) -> Iterator[Stop]:
    """One for each argument that really arrives: null never does, and false only where verl hands it on."""
    if not release.passes_engine_kwargs:
        return
    for key, node in kwargs:
        value, name = arriving(node), canonical(key)
        gone = removed("engine", name, vllm)
        if gone is None or value is None or isinstance(value, Unknown):
            continue
        if (value is False and release.drops_false is not False) or (release.in_process and name == _ONLY_WARNS):
            continue
        said = f"gives the engine {name}, which vLLM {vllm} does not have: {gone.effect}. {gone.instead}"
        yield Stop(f"{shown(node.place.path)}:{node.place.line}", said.strip().removesuffix("."), True)
