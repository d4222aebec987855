"""What YAML cannot say of AReaL: sizes inside `vllm:d4p1t2`, variables in a list, and fields that spell a false."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.mapping_writer import one_mapping
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.configs.syntax.spelling import Write
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.spec import Spec
from rlaudit.dialects.tree import Tree

_VLLM = re.compile(r"\bvllm(?:\[[^\]]*\])?[:.](\w+)")
_SIZE = re.compile(r"([a-z])(\d+)")
# Fields of releases before the one that was read.
_OLDER = {"enable_prefix_caching", "enable_chunked_prefill", "swap_space", "num_scheduler_steps"}


def with_parallel(source: Source, spec: Spec) -> Iterator[Tree]:
    """Return a YAML file with what it inherits, and with the parts of its backend under `parallel`."""
    written, config = mapping_of(source), composed(source)
    if written is None or config is None or not isinstance(config.root.value, dict):
        return
    root = config.root
    backends = (root.get("rollout", "backend"), root.get("allocation_mode"))
    backend = next((node for node in backends if node is not None and isinstance(node.value, str)), None)
    if backend is not None:
        root = replace(root, value={**config.root.value, "parallel": _parallel(backend)})
    yield Tree(root, written, parts=config.parts, missing=config.missing)


def _parallel(backend: Node) -> Node:
    match = _VLLM.search(backend.value)
    if match is None:
        return replace(backend, value={"name": backend})
    sizes = {"d": 1, "p": 1, "t": 1, **{letter: int(size) for letter, size in _SIZE.findall(match[1])}}
    parts = {letter: replace(backend, value=size) for letter, size in sizes.items()}
    return replace(backend, value={"name": replace(backend, value="vllm"), **parts})


def variables(reading: Reading) -> None:
    """Take the variables of the scheduling specification, which is a list."""
    spec = reading.node("rollout.scheduling_spec | actor.scheduling_spec")
    for task in spec.elements() if spec is not None else ():
        for name, node in entries(task.get("env_vars")):
            if name.startswith(("VLLM_", "NCCL_")):
                reading.draft.environment.by_file(name, node)


def fields(reading: Reading) -> Write:
    """Return a writer of the dataclass's fields, which writes a false only under a negated field."""
    names = reading.spec.keys_below("vllm") - _OLDER

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        negated = f"no_{name}"
        if negated in names and isinstance(value, bool):
            is_there = reading.code.checkout is None or reading.code.has({"areal/api/cli_args.py": f"{negated}: bool"})
            return (negated, "false" if value else "true") if is_there else None
        if name not in names or value is False or not isinstance(value, bool | int | float | str):
            return None
        return name, "true" if value is True else str(value)

    return one_mapping(reading.tree.own.get("vllm"), spell, reading.source.text)
