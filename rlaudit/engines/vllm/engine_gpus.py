"""Over how many GPUs an engine spreads its model, as its arguments say."""

import math
from collections.abc import Mapping
from typing import Any


def gpus_of(engine_args: Mapping[str, Any]) -> int:
    """Tensor times pipeline parallelism, and where experts are spread over the replicas, these too."""
    names = ["tensor_parallel_size", "pipeline_parallel_size"]
    if engine_args.get("enable_expert_parallel"):
        names.append("data_parallel_size")
    return math.prod(max(1, int(engine_args.get(name) or 1)) for name in names)
