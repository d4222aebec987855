"""What YAML cannot say of ROLL: its lists of GPUs, `list(range(0,8))`."""

import re

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.draft import known

_RANGE = re.compile(r"list\(range\((\d+),\s*(\d+)\)\)")


def replicas(reading: Reading) -> None:
    """Count the engines: GPUs of actor_infer divided by the ranks of one engine."""
    mapping, parallel = reading.node("actor_infer.device_mapping"), reading.draft.engine.get("tensor_parallel_size")
    text = str(known(mapping)).strip()
    devices = int(span[2]) - int(span[1]) if (span := _RANGE.fullmatch(text)) is not None else None
    if re.fullmatch(r"\[[\d,\s]+\]", text):
        devices = len(text.strip("[] ").split(","))
    ranks = parallel.value if parallel is not None else known(reading.node("actor_infer.num_gpus_per_worker"), 1)
    missing = "actor_infer.device_mapping is not a plain list of GPUs"
    reading.draft.count_replicas(devices, [ranks], "devices of actor_infer", missing, mapping)
