"""Conditions that several advisories share: each is true, false, or Unknown with why the config leaves it open."""

from collections.abc import Callable
from typing import Any

from packaging.version import Version

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Condition
from rlaudit.inspection.audit import Side
from rlaudit.inspection.head_dtype import rollout_head_dtype
from rlaudit.inspection.returned_logprobs import Returned, returned_logprobs
from rlaudit.inspection.sampling import GREEDY_BELOW, filters, temperature
from rlaudit.inspection.update_path import UpdatePath, update_path
from rlaudit.vllm.architecture import Architecture, architecture
from rlaudit.vllm.machine import UnreadMachine
from rlaudit.vllm.resolution_rule import number, object_of

Asked = bool | Unknown


def holds_for(value: Any, holds: Callable[[Any], bool]) -> Asked:
    """Return whether a value is as wanted; the value itself if it is Unknown."""
    return value if isinstance(value, Unknown) else holds(value)


def setting(name: str, says: str, *wanted: Any) -> Condition:
    """Return the condition that an engine argument or a derived value of vLLM, as it runs, is one of `wanted`."""
    return Condition(says, lambda side: holds_for(side.value(name), lambda value: value in wanted))


def model(says: str, holds: Callable[[Architecture], bool]) -> Condition:
    """Return a condition on the architecture of the model that runs."""
    return Condition(says, lambda side: holds_for(architecture(side.resolution), holds), "the model")


def written_by(says: str, *paths: UpdatePath) -> Condition:
    """Return the condition that new weights come in one of these ways."""

    def holds(side: Side) -> Asked:
        path = update_path(side)
        if isinstance(path, Unknown) and path.among and not set(path.among) & set(paths):
            return False
        return holds_for(path, lambda path: path in paths)

    return Condition(says, holds, "the update path")


def gpu(says: str, *families: int) -> Condition:
    """Return the condition that the compute capability is of one of some families: 9 for Hopper, 10 for Blackwell."""

    def holds(side: Side) -> Asked:
        machine = side.machine
        return not isinstance(machine, UnreadMachine) and machine.capability // 10 in families

    return Condition(says, holds)


def patched_by(framework: str, since: str, says: str) -> Condition:
    """Return the condition that a framework mends the defect itself, in its releases for this vLLM and later ones."""
    first = Version(since)
    return Condition(says, lambda side: side.config.framework == framework and side.version >= first)


def more_than_one(name: str, says: str) -> Condition:
    """Return the condition that an argument which counts ranks or stages is above one."""
    return Condition(says, lambda side: holds_for(side.value(name), lambda value: (number(value) or 1) > 1))


def _unquantized(side: Side) -> Asked:
    given, found = side.value("quantization"), architecture(side.resolution)
    if given is not None:
        return holds_for(given, lambda method: False)
    return holds_for(found, lambda kind: not kind.quantized)


def _images_in_prompts(side: Side) -> Asked:
    """A model that reads images is as often trained on text alone."""
    limits = object_of(side.value("limit_mm_per_prompt"))
    if side.value("language_model_only") is True or (limits and not any(limits.values())):
        return False
    return True if limits else Unknown("whether prompts have images is not told by this file")


def _flashinfer_experts(side: Side) -> Asked:
    """Of 0.20.0 and later, where FlashInfer comes first and nothing takes it away (oracle/unquantized.py of vLLM)."""
    variable, backend = side.variable("VLLM_USE_FLASHINFER_MOE_FP16"), side.value("moe_backend")
    if side.machine.flashinfer is False or side.value("enable_lora") is True:
        return False
    if variable is not None and (not variable.known or str(variable.value) == "0"):
        return variable.value if isinstance(variable.value, Unknown) else False
    return holds_for(backend, lambda name: name in (None, "auto", "flashinfer_cutlass", "flashinfer_trtllm"))


def _updated(side: Side) -> Asked:
    updates = side.config.trainer.get("weight_updates")
    return False if updates is None else holds_for(updates.value, lambda how: how not in (None, "none"))


def _cache_survives(side: Side) -> Asked:
    facts = [side.config.trainer.get(name) for name in ("resets_prefix_cache", "salts_prefix_cache")]
    if any(fact is not None and fact.value is True for fact in facts):
        return False
    reset = facts[0]
    if reset is None or isinstance(reset.value, Unknown):
        return Unknown("whether the prefix cache is reset with every update is not told by this file")
    return True


SECOND_RUNNER = setting("model_runner", "Model Runner V2 runs", "V2")
ASYNC_SCHEDULING = setting("async_scheduling", "async scheduling is on", True)
PREFIX_CACHING = setting("enable_prefix_caching", "prefix caching is on", True)
SLEEPS = setting("enable_sleep_mode", "the engine sleeps", True)
EIGHT_BIT_CACHE = setting("kv_cache_dtype", "the key-value cache has 8 bits", "fp8", "fp8_e4m3", "fp8_e5m2")
REPLAYS_ROUTING = setting("enable_return_routed_experts", "routed experts are returned", True)
DECODE_GRAPHS = setting(
    "cudagraph_mode", "decoding runs in CUDA graphs", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"
)
GRAPHS = setting("cudagraph_mode", "CUDA graphs are on", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "PIECEWISE")
PROCESSED_LOGPROBS = Condition(
    "processed logprobs are returned",
    lambda side: holds_for(returned_logprobs(side), lambda returned: returned is Returned.PROCESSED),
)
TEMPERATURE_NOT_ONE = Condition(
    "the temperature is not 1",
    lambda side: holds_for(temperature(side), lambda heat: heat != 1 and heat >= GREEDY_BELOW),
)
HALF_PRECISION_HEAD = Condition(
    "the output head runs in half precision",
    lambda side: holds_for(rollout_head_dtype(side), lambda dtype: dtype != "float32"),
)
FLOAT32_HEAD = Condition(
    "the output head runs in float32",
    lambda side: holds_for(rollout_head_dtype(side), lambda dtype: dtype == "float32"),
)
FILTERED = Condition("top-k or top-p is set", lambda side: bool({"top_k", "top_p"} & set(filters(side))))
UPDATED = Condition("weights are updated", _updated)
LOADED = written_by("new weights are only loaded, and nothing is derived from them again", UpdatePath.LOADED)
PROCESSED = written_by("new weights are processed again after loading", UpdatePath.PROCESSED)
RELOADED = written_by("weights come by vLLM's layerwise reload", UpdatePath.RELOADED)
DERIVED_AGAIN = written_by("weights are derived again after every update", UpdatePath.RELOADED, UpdatePath.PROCESSED)
CACHE_SURVIVES = Condition("the prefix cache is not reset with updates", _cache_survives)
MIXTURE = model("the model is a mixture of experts", lambda kind: kind.mixture)
LATENT_ATTENTION = model("the model has multi-head latent attention", lambda kind: kind.latent_attention)
MAMBA2 = model("the model has Mamba-2 layers", lambda kind: kind.mamba2)
IMAGES = model("the model reads images", lambda kind: kind.images)
IN_PROMPTS = Condition("prompts have images", _images_in_prompts)
UNQUANTIZED = Condition("weights are not quantized", _unquantized, "the model")
FLASHINFER_EXPERTS = Condition("FlashInfer's kernels for experts are not ruled out", _flashinfer_experts)
HOPPER = gpu("the GPU is a Hopper", 9)
BLACKWELL = gpu("the GPU is a Blackwell of a data center", 10)
