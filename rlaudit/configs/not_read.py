"""Files that configure vLLM in a way that rlaudit does not read: what they are written for, and the line that shows it.

A user's program that takes vLLM's flags may use them in any way: `rlaudit record` writes down what arrives. torchforge
rests since November 2025; Ray Serve, the production stack and vLLM's recipes serve models and train none, and so do
the images that start a server by themselves.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rlaudit.configs.source import SHELL, Source

_PYTHON, _YAML = frozenset({".py"}), frozenset({".yaml", ".yml"})
_DOCKERFILE = frozenset({"", ".dockerfile", ".containerfile"})


@dataclass(frozen=True)
class _Kind:
    """How a kind of file is recognised. words: it contains all of them. begins: the beginning of the part for vLLM."""

    suffixes: frozenset[str]
    words: tuple[str, ...]
    begins: re.Pattern[str]


# A command of a Python program over several lines, up to a flag that only vLLM's own parser has.
_FLAG = r"--(?:gpu[-_]memory[-_]utilization|max[-_]model[-_]len|max[-_]num[-_]seqs|enforce[-_]eager)\b"
_OF_A_SERVER = rf"(?:\bvllm[\"', \t]+serve\b|vllm[./]entrypoints[./]|{_FLAG})"
_IN_AN_IMAGE = rf"^[ \t]*(?:CMD|ENTRYPOINT)[ \t](?:[^\\\n]|\\\n|\\.){{0,500}}?{_OF_A_SERVER}"
_OWN_SERVER = rf"^[^#\n]*\bpython[\d.]*[ \t](?:[^\\\n]|\\\n|\\.){{0,2000}}?{_FLAG}"
_KINDS: Mapping[str, _Kind] = {
    "vLLM under torchforge's config": _Kind(
        _YAML,
        ("engine_",),
        # An actor, and below it, before the next key of its level, the arguments of its engine.
        re.compile(r"^(?:policy|generator):[^\n]*\n(?:(?:[ \t#][^\n]*)?\n)*?[ \t]+engine_(?:args|config):", re.M),
    ),
    "vLLM under Ray's LLMConfig": _Kind(
        _PYTHON, ("engine_kwargs",), re.compile(r"(?<!class )\b(?:LLMConfig|vLLMEngineProcessorConfig)\(")
    ),
    "vLLM under Ray Serve's llm_configs": _Kind(
        _YAML, ("engine_kwargs:",), re.compile(r"^[ \t-]*model_loading_config:", re.M)
    ),
    "vLLM under another program that takes vLLM's flags": _Kind(SHELL, (), re.compile(_OWN_SERVER, re.M)),
    "vLLM under a Dockerfile's CMD or ENTRYPOINT": _Kind(_DOCKERFILE, ("FROM ",), re.compile(_IN_AN_IMAGE, re.M)),
    "vLLM under a Helm chart's values": _Kind(
        _YAML, (), re.compile(r"^[ \t-]*vllmConfig:|^[ \t]+repository:[ \t]*\S*\bprime-rl[ \t]*$", re.M)
    ),
    "vLLM under a recipe of vLLM's collection": _Kind(
        _YAML, ("model_id:", "base_args:"), re.compile(r"^variants:", re.M)
    ),
}


def not_read(source: Source) -> tuple[str, int] | None:
    """Return what a file is written for, and the line that shows it; None if other code reads it."""
    text = source.text
    for name, kind in _KINDS.items():
        if source.suffix in kind.suffixes and all(word in text for word in kind.words):
            match = kind.begins.search(text)
            if match is not None:
                return name, text.count("\n", 0, match.start()) + 1
    return None
