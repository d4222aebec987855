"""How a framework writes new weights into a running vLLM: the calls after which some defects show, and others do not.

LOADED: `model.load_weights` and nothing else: what vLLM derives from weights after the first load stays as it was.
PROCESSED: `load_weights`, then `process_weights_after_loading` over the whole model. RELOADED: vLLM's own layerwise
reload (`reload_weights`, or start_weight_update to finish_weight_update in checkpoint format).
Read in TRL f2cd577 trl/generation/vllm_generation.py:392 and trl/scripts/vllm_serve.py:149, OpenRLHF 3c3be62
openrlhf/trainer/ray/vllm_worker_wrap.py:48, PipelineRL 58d3934 pipelinerl/vllm1.py:122, verl 1dda039
verl/workers/rollout/vllm_rollout/utils.py:334, NeMo-RL 7ea279a nemo_rl/models/generation/vllm/vllm_backend.py:617,
prime-rl 559b447 src/prime_rl/inference/vllm/worker/weight_transfer.py:22, SkyRL a956457
skyrl/backends/skyrl_train/inference_servers/layerwise_reload.py:83.
"""

from enum import StrEnum

from packaging.version import Version

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.audit import Side


class UpdatePath(StrEnum):
    """What is called."""

    LOADED = "load_weights"
    PROCESSED = "load_weights, then process_weights_after_loading"
    RELOADED = "vLLM's layerwise reload"


# framework -> the first vLLM with which it is known to do so, and what it does.
_OF_FRAMEWORKS = {
    "trl": (Version("0.8.5"), UpdatePath.LOADED),
    "openrlhf": (Version("0.8.5"), UpdatePath.LOADED),
    "pipelinerl": (Version("0.8.5"), UpdatePath.LOADED),
    "verl": (Version("0.18.0"), UpdatePath.PROCESSED),
    "rllm": (Version("0.18.0"), UpdatePath.PROCESSED),
    "nemo_rl": (Version("0.20.0"), UpdatePath.PROCESSED),
    "prime_rl": (Version("0.20.0"), UpdatePath.RELOADED),
    "skyrl": (Version("0.23.0"), UpdatePath.RELOADED),
}


def update_path(side: Side) -> UpdatePath | Unknown | None:
    """None where weights are not updated, or nothing says that they are: an inference server has no such danger."""
    if side.resolution.given("weight_transfer_config") is not None:
        return (
            UpdatePath.RELOADED
        )  # update_weights of vLLM's own engines for weight transfer (gpu_worker.py 0.16.0:985)
    updates = side.config.trainer.get("weight_updates")
    if updates is None or updates.value in (None, "none"):
        return None
    if side.config.engine.get("enable_lora") is not None and side.value("enable_lora") is True:
        return None  # adapters are exchanged, and the weights below them stay
    known = _OF_FRAMEWORKS.get(side.config.framework)
    if known is None or side.version < known[0]:
        return Unknown(f"how {side.config.framework} loads new weights into vLLM {side.version} is not known")
    return known[1]
