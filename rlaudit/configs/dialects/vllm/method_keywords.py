"""Keywords of `LLM.generate` that a release does not take: a TypeError at the first batch, after the engine started.

Other classes have a `generate` too, so only a keyword that some release's LLM has taken counts, and where the file has
a `generate` of its own, only what is called on a variable that holds an LLM.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.engine_objects import engine_objects
from rlaudit.configs.rollout_config import Loss
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_text import parse
from rlaudit.vllm.catalogue import Catalogue, known_versions

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

GENERATE = "generate"


def take_generate(draft: Draft, source: Source, calls: "Iterable[Call]", catalogue: Catalogue) -> None:
    """Lose the keywords of each call of LLM's method."""
    method = f"LLM.{GENERATE}"
    ends = (Catalogue.at(known_versions()[0]), Catalogue.at(known_versions()[-1]))
    missing = {name for one in ends for name in one.signatures[method]} - set(catalogue.signatures[method])
    asked = [call for call in calls if call.name == GENERATE and not missing.isdisjoint(call.arguments)]
    if asked and f"def {GENERATE}(" in source.text:
        held = engine_objects(parse(source.text)).kinds
        asked = [call for call in asked if held.get(_receiver(source, call)) == "LLM"]
    for call in asked:
        for name, node in call.arguments.items():
            if name in missing:
                reason = f"TypeError: {method} of vLLM {catalogue.version} has no argument {name}"
                draft.lose(f"{method}({name})", Node(None, node.place), Loss.REFUSED, reason)


def _receiver(source: Source, call: "Call") -> str:
    """What a method is called on, as it is written: `self.llm`."""
    return source.text[call.place.start : call.place.end].partition(f".{GENERATE}(")[0].strip()
