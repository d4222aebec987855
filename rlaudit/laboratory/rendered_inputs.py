"""The prompts of a run and shapes of conversations, as an environment's own transformers renders and encodes them.

Every engine gets the trainer's token ids. In a training each side renders by itself, and releases of transformers,
tokenizers and templates differ: what an engine's environment makes of the same inputs is asked before it starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlaudit.engines.cells.launch import Outcome

SHAPES = Path(__file__).with_name("chat_shapes.yaml")


@dataclass(frozen=True)
class Rendered:
    """One input: its ids and text, or why a template refused it."""

    token_ids: tuple[int, ...] = ()
    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class RenderedInputs:
    """What one environment made of all inputs, or why it made nothing."""

    # "the trainer" or "vLLM 0.18.1".
    side: str
    # Of transformers and tokenizers.
    versions: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, Rendered] = field(default_factory=dict)
    # None of them if the model has no chat template, or if the prompts are token ids.
    shapes: Mapping[str, Rendered] = field(default_factory=dict)
    failure: str = ""

    @property
    def all(self) -> Mapping[str, Rendered]:
        """Prompts and shapes by name."""
        return {**self.prompts, **self.shapes}


@cache
def chat_shapes() -> Mapping[str, Mapping[str, Any]]:
    """Return the shapes of conversations by name: arguments of apply_chat_template."""
    shapes: Mapping[str, Mapping[str, Any]] = yaml.safe_load(SHAPES.read_text(encoding="utf-8"))
    return shapes


def rendered_inputs(side: str, outcome: Outcome) -> RenderedInputs:
    """Read the outcome of a cell that rendered the inputs of a side."""
    if outcome.status != "ok":
        return RenderedInputs(side, failure=outcome.why)
    result = outcome.result
    texts = result.get("texts", ())
    prompts = {
        f"prompt {number}": Rendered(tuple(token_ids), text)
        for number, (token_ids, text) in enumerate(zip(result["prompt_token_ids"], texts, strict=False), start=1)
        if text is not None
    }
    shapes = {
        name: Rendered(tuple(shape.get("token_ids", ())), shape.get("text", ""), shape.get("error", ""))
        for name, shape in result.get("shapes", {}).items()
    }
    return RenderedInputs(side, result.get("versions", {}), prompts, shapes)
