"""What YAML cannot say of ROLL: its lists of GPUs, `list(range(0,8))`."""

import re

from rlaudit.configs.draft import known
from rlaudit.dialects.reading import Reading

_RANGE = re.compile(r"list\(range\((\d+),\s*(\d+)\)\)")
_LIST = re.compile(r"\[[\d,\s]+\]")


def replicas(reading: Reading) -> None:
    """Count the engines: GPUs of actor_infer divided by the ranks of one engine."""
    root, parallel = reading.tree.root, reading.draft.engine.get("tensor_parallel_size")
    mapping = root.get("actor_infer", "device_mapping")
    per_worker = known(root.get("actor_infer", "num_gpus_per_worker"), 1)
    ranks = parallel.value if parallel is not None else per_worker
    missing = "actor_infer.device_mapping is not a plain list of GPUs"
    reading.draft.count_replicas(_devices(known(mapping)), [ranks], "devices of actor_infer", missing, mapping)


def _devices(mapping: object) -> int | None:
    text = mapping.strip() if isinstance(mapping, str) else ""
    if (span := _RANGE.fullmatch(text)) is not None:
        return int(span[2]) - int(span[1])
    return len(text.strip("[] ").split(",")) if _LIST.fullmatch(text) else None
