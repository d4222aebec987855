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
# Fields that releases before the one that was read had.
_OLDER = {"enable_prefix_caching", "enable_chunked_prefill", "swap_space", "num_scheduler_steps"}


def with_parallel(source: Source, spec: Spec) -> Iterator[Tree]:
    """Return a YAML file with what it inherits, and with the parts of its backend under `parallel`."""
    own, config = mapping_of(source), composed(source)
    if own is None or config is None or not isinstance(config.root.value, dict):
        return
    root, missing, limits = config.root, config.missing, config.limits
    backends = (root.get("rollout", "backend"), root.get("allocation_mode"))
    backend = next((one for one in backends if one is not None and isinstance(one.value, str)), None)
    if backend is not None:
        root = replace(root, value={**config.root.value, "parallel": _parallel(backend)})
    yield Tree(
        root, own, parts=config.parts, missing=missing, limits=limits, is_composed=own.get("defaults") is not None
    )


def _parallel(backend: Node) -> Node:
    found = _VLLM.search(backend.value)
    if found is None:
        return replace(backend, value={"name": backend})
    sizes = {"d": 1, "p": 1, "t": 1, **{letter: int(size) for letter, size in _SIZE.findall(found[1])}}
    parts = {letter: replace(backend, value=size) for letter, size in sizes.items()}
    return replace(backend, value={"name": replace(backend, value="vllm"), **parts})


def variables(reading: Reading) -> None:
    """Take the variables of the scheduling specification, which is a list."""
    spec = reading.node("rollout.scheduling_spec | actor.scheduling_spec")
    for one in spec.elements() if spec is not None else ():
        for name, node in entries(one.get("env_vars")):
            if name.startswith(("VLLM_", "NCCL_")):
                reading.draft.environment.by_file(name, node)


def fields(reading: Reading) -> Write:
    """Write fields of the dataclass, and a false only under a negated one."""
    known = reading.spec.keys_below("vllm") - _OLDER

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        negated = f"no_{name}"
        if negated in known and isinstance(value, bool):
            is_there = reading.code.checkout is None or reading.code.has({"areal/api/cli_args.py": f"{negated}: bool"})
            return (negated, "false" if value else "true") if is_there else None
        if name not in known or value is False or not isinstance(value, bool | int | float | str):
            return None
        return name, "true" if value is True else str(value)

    return one_mapping(reading.tree.own.get("vllm"), spell, reading.source.text)
