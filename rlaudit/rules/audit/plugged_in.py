"""Whether a project brings logits processors as a plug-in of vLLM, which no config names."""

from pathlib import Path

from rlaudit.vllm.pins.files import is_outermost, text_of

# vllm/v1/sample/logits_processor/__init__.py loads every class of this group of entry points.
_GROUP = "vllm.logits_processors"
_DECLARED_IN = ("pyproject.toml", "setup.cfg", "setup.py")


def brings_logits_processors(config: str) -> bool:
    """Return whether a file of the project around a config declares them, as far up as pins are looked for."""
    for folder in Path(config).absolute().parents:
        if any(_GROUP in text_of(folder / name) for name in _DECLARED_IN):
            return True
        if is_outermost(folder):
            break
    return False
