"""Keywords of `LLM.generate` that a release does not take: a TypeError at the first batch, after the engine started.

Other classes have a `generate` too, so only a keyword that some release's LLM has taken counts.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rlaudit.configs.draft import Draft
from rlaudit.configs.rollout_config import Loss
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.vllm.catalogue import Catalogue, known_versions

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

GENERATE = "generate"


def take_generate(draft: Draft, source: Source, calls: "Iterable[Call]", catalogue: Catalogue) -> None:
    """Lose the keywords of each call; none where the file has a `generate` of its own, which may take them."""
    method = f"LLM.{GENERATE}"
    ends = (Catalogue.at(known_versions()[0]), Catalogue.at(known_versions()[-1]))
    missing = {name for one in ends for name in one.signatures[method]} - set(catalogue.signatures[method])
    if f"def {GENERATE}(" in source.text:
        return
    for call in calls:
        for name, node in call.arguments.items() if call.name == GENERATE else ():
            if name in missing:
                reason = f"TypeError: {method} of vLLM {catalogue.version} has no argument {name}"
                draft.lose(f"{method}({name})", Node(None, node.place), Loss.REFUSED, reason)
