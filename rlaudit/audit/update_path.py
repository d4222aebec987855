"""How a framework writes new weights into a running vLLM: which defects show depends on the calls.

LOADED: `model.load_weights` and nothing else: what vLLM derives from weights after the first load stays as it was.
PROCESSED: `load_weights`, then `process_weights_after_loading` over the whole model. RELOADED: vLLM's own layerwise
reload (`reload_weights`, or start_weight_update to finish_weight_update in checkpoint format). COPIED: tensors that the
trainer has brought into the kernels' layout, copied in place with all that is derived from them.
Read in TRL f2cd577 trl/generation/vllm_generation.py:392 and trl/scripts/vllm_serve.py:149, OpenRLHF 3c3be62
openrlhf/trainer/ray/vllm_worker_wrap.py:48, PipelineRL 58d3934 pipelinerl/vllm1.py:122, verl 1dda039
verl/workers/rollout/vllm_rollout/utils.py:334, NeMo-RL 7ea279a nemo_rl/models/generation/vllm/vllm_backend.py:617,
prime-rl 559b447 src/prime_rl/inference/vllm/worker/weight_transfer.py:22 (the default since 319af10, with vLLM
0.20.1) and nccl.py:148, SkyRL 5a527df skyrl/backends/skyrl_train/inference_servers/layerwise_reload.py (with vLLM
0.20.2, late).
"""

from enum import StrEnum

from packaging.version import Version

from rlaudit.audit.audit import Audit, Side
from rlaudit.settings.trainer_facts import WeightUpdates
from rlaudit.unknown import Unknown


class UpdatePath(StrEnum):
    """The calls by which new weights come."""

    LOADED = "load_weights"
    PROCESSED = "load_weights, then process_weights_after_loading"
    RELOADED = "vLLM's layerwise reload"
    COPIED = "copied in the kernels' own layout"


ALWAYS = Version("0")
_LOADED, _PROCESSED, _RELOADED, _COPIED = UpdatePath
_QUANTIZED_ON_THE_WAY = "weight_broadcast.quantize_in_weight_transfer"
# framework -> the first vLLM with which its path is certain, that path, and the possible ones before.
_OF_FRAMEWORKS = {
    "trl": (ALWAYS, _LOADED, ()),
    "openrlhf": (ALWAYS, _LOADED, ()),
    "pipelinerl": (ALWAYS, _LOADED, ()),
    "verl": (Version("0.18.0"), _PROCESSED, (_LOADED, _PROCESSED)),
    "rllm": (Version("0.18.0"), _PROCESSED, (_LOADED, _PROCESSED)),
    "nemo_rl": (Version("0.20.0"), _PROCESSED, (_LOADED, _PROCESSED)),
    "skyrl": (Version("0.21.0"), _RELOADED, (_LOADED, _RELOADED)),
    "prime_rl": (Version("0.20.1"), _RELOADED, tuple(UpdatePath)),
}


def update_path(side: Side) -> UpdatePath | Unknown | None:
    """Return the path; None unless the config says that weights are updated."""
    transfer = side.value("weight_transfer_config")
    if transfer is not None and not isinstance(transfer, Unknown):
        # update_weights of vLLM's own engines for weight transfer (vllm/v1/worker/gpu_worker.py 0.16.0:985).
        return UpdatePath.RELOADED
    if side.config.facts.weight_updates in (None, WeightUpdates.NONE):
        return None
    if side.value("enable_lora") is True:
        return None  # adapters are exchanged, and the weights below them stay
    called = side.config.facts.update_calls
    if isinstance(called, list):
        return _path_of_calls(called)
    overruled = _of_prime_rl(side)
    return overruled if overruled is not None else _of_framework(side)


def _path_of_calls(methods: list[str]) -> UpdatePath | Unknown:
    """Return the path by the recorded methods. A worker's steps after `load_weights` are not recorded."""
    # Reading recordings costs start-up time that files should not pay.
    from rlaudit.recorder.weight_updates import MOVING

    if MOVING.intersection(methods):
        return _RELOADED
    if "load_weights" in methods:
        return Unknown("what follows load_weights is not recorded", (_LOADED, _PROCESSED))
    return Unknown(f"what {', '.join(methods)} does with weights is not recorded", tuple(UpdatePath))


def _of_prime_rl(side: Side) -> UpdatePath | Unknown | None:
    """Return the path that overrules prime-rl's default."""
    if side.config.framework != "prime_rl":
        return None
    options = side.config.options.items()
    quantized = next((option for name, option in options if name.endswith(_QUANTIZED_ON_THE_WAY)), None)
    if quantized is None and not side.config.sampling:
        return Unknown("how weights are broadcast is in another file of this run", (_RELOADED, _COPIED))
    if quantized is None or quantized.value is False:
        return None
    return quantized.value if isinstance(quantized.value, Unknown) else _COPIED


def _of_framework(side: Side) -> UpdatePath | Unknown:
    since, path, earlier = _OF_FRAMEWORKS.get(side.config.framework, (None, None, tuple(UpdatePath)))
    if since is not None and path is not None and side.version >= since:
        return path
    return Unknown(f"how {side.config.framework} loads new weights into vLLM {side.version} is not known", earlier)


def updates(audit: Audit) -> str | None:
    """Return a clause with how weights are updated; None unless the config says that they are."""
    when = audit.config.facts.weight_updates
    if when in (None, WeightUpdates.NONE):
        return None
    return "weights are updated" if isinstance(when, Unknown) else f"weights are updated {when}"


def cleaned(audit: Audit) -> bool | Unknown | None:
    """Return whether cached prefixes of old weights are kept out of use; None if the config does not say.

    Each of three things suffices: a reset with the update, a pause that clears the cache, a salt that changes with the
    policy. If one of them is unknown, so is the answer.
    """
    facts = audit.config.facts
    means = (facts.resets_prefix_cache, facts.salts_prefix_cache, facts.pause_clears_cache)
    if any(used is True for used in means):
        return True
    reasons = dict.fromkeys(used.reason for used in means if isinstance(used, Unknown))
    if reasons:
        return Unknown("; ".join(reasons))
    return False if facts.resets_prefix_cache is False else None
