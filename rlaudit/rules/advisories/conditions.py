"""What an advisory's conditions may say: names for those that several share, and a text in the grammar of dialects.

Each condition is true, false, or Unknown with why the config leaves it open.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.condition import Truth, compared, condition
from rlaudit.rules.audit.audit import Side
from rlaudit.rules.audit.batch_invariance import asks_for_batch_invariance
from rlaudit.rules.audit.head_dtype import requested_head_dtype, rollout_head_dtype
from rlaudit.rules.audit.plugged_in import brings_logits_processors
from rlaudit.rules.audit.returned_logprobs import Returned, returned_logprobs
from rlaudit.rules.audit.sampling import GREEDY_BELOW, filters, penalties, temperature
from rlaudit.rules.audit.update_path import update_path
from rlaudit.settings.trainer_facts import Dtype, UpdatePath, WeightUpdates, fact_of, fact_types
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.unknown import Unknown
from rlaudit.vllm.architecture import Architecture, architecture
from rlaudit.vllm.machine import UnreadMachine
from rlaudit.vllm.resolve import object_of, part

Predicate = Callable[[Side], Truth]

_SAMPLED_TOKENS_PUT_IN = Version("0.11.1")  # vllm#26467
_PADDED_TO = 64  # DEFAULT_VOCAB_PADDING_SIZE of vLLM
_MODEL = "the model"
# Passes of vLLM that split what ranks add up, under all of their names: the second pair was renamed to the first.
_SEQUENCE_PARALLEL = ("enable_sp", "fuse_gemm_comms", "enable_sequence_parallelism", "enable_async_tp")
_DECODE_GRAPHS = "FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE"


@dataclass(frozen=True)
class Condition:
    """One thing that must hold."""

    # A clause: `prefix caching is on`.
    says: str
    # Unknown if a config leaves it open.
    holds: Predicate
    # The fact that decides it, and every other condition about the same fact.
    about: str = ""


def condition_of(written: Any) -> Condition:
    """Return the condition that an advisory writes: a name of NAMED, or a sentence in `says` with its `if`.

    Raises ValueError for another name, and if the text is no condition or refers to nothing.
    """
    if isinstance(written, str):
        if written not in NAMED:
            raise ValueError(f"no condition is called {written}; {did_you_mean(written, NAMED, ', '.join(NAMED))}")
        return NAMED[written]
    if set(written) != {"says", "if"}:
        raise ValueError(f"a condition has `says` and `if`, and not {', '.join(written)}")
    return _condition(written["says"], written["if"])


def _condition(says: str, text: str) -> Condition:
    """Return what a text of the dialects' grammar (dialects/condition.py) says of one side."""
    holds = condition(text)
    holds(_References())
    return Condition(says, lambda side: holds(_Facts(side)), _MODEL if "$model." in text else "")


class _Facts:
    """What references mean: `$engine.x`, `$sampling.x`, `$trainer.x`, `$model.x`, `$option.x`, `vllm`, `framework`,
    `offline`, `gpu`.

    An engine argument is the one that vLLM runs with, or a value that it derives. A fact of the trainer that is open is
    none. An option is the framework's own, as it spells it. `offline` is whether the engine is in the program and no
    server. `gpu` is 9 for a Hopper, 10 for a Blackwell of a data center.
    """

    def __init__(self, side: Side) -> None:
        self._side = side

    def value(self, reference: str) -> Any:
        """Return what a reference refers to; Unknown if it is not known."""
        side, (kind, _, name) = self._side, reference.removeprefix("$").partition(".")
        if kind in ("engine", "sampling"):
            return side.value(name) if kind == "engine" else side.sampling(name)
        if kind == "trainer":
            return None if isinstance(fact := getattr(side.config.facts, name), Unknown) else fact
        if kind == "model":
            return _tested(architecture(side.resolution), lambda model: getattr(model, name))
        if kind == "option":
            return option.value if (option := side.config.options.get(name)) is not None else None
        if kind in ("framework", "offline"):
            return getattr(side.config, kind)
        return None if isinstance(side.machine, UnreadMachine) else side.machine.capability // 10

    def is_written(self, reference: str) -> bool:
        """Return whether a parameter of requests is set."""
        return self._side.config.sampling.get(reference.rpartition(".")[2]) is not None

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a reference compares to a word; vLLM's release compares as a release."""
        if reference == "vllm":
            return compared(self._side.version, sign, Version(str(other)))
        return compared(self.value(reference), sign, other)


class _References:
    """A look at every reference of a condition. Raises ValueError for one that can never be as wanted."""

    def value(self, reference: str) -> Any:
        """Refuse a reference that is none."""
        kind, _, name = reference.partition(".")
        known = {"$trainer": fact_types(), "$model": dir(Architecture)}.get(kind)
        if kind not in {"$engine", "$sampling", "$trainer", "$model", "$option", "framework", "offline", "gpu", "vllm"}:
            raise ValueError(f"a condition refers to {reference}, which is nothing")
        if known is not None and name not in known:
            raise ValueError(f"{reference} is nothing; {did_you_mean(name, known, '')}")

    def is_written(self, reference: str) -> bool:
        """Refuse a reference that is none."""
        self.value(reference)
        return True

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Refuse a fact of the trainer that can never be so."""
        self.value(reference)
        if reference.startswith("$trainer.") and isinstance(
            fact := fact_of(reference.partition(".")[2], other), Unknown
        ):
            raise ValueError(fact.reason)
        return True


def _tested(value: Any, holds: Callable[[Any], bool]) -> Truth:
    """Return whether a predicate holds for a value; the value itself if it is Unknown."""
    return value if isinstance(value, Unknown) else holds(value)


def _written_by(*paths: UpdatePath) -> Predicate:
    """Test whether new weights come by one of these paths."""

    def holds(side: Side) -> Truth:
        path = update_path(side)
        if isinstance(path, Unknown) and path.among and not set(path.among) & set(paths):
            return False
        return _tested(path, lambda path: path in paths)

    return holds


def _unquantized(side: Side) -> Truth:
    given, model = side.value("quantization"), architecture(side.resolution)
    if given is not None:
        return _tested(given, lambda method: False)
    return _tested(model, lambda kind: not kind.quantized)


def _images_in_prompts(side: Side) -> Truth:
    """Return whether a limit allows images. Without one it is open: such a model is as often trained on text alone."""
    limits = object_of(side.value("limit_mm_per_prompt"))
    if side.value("language_model_only") is True or (limits and not any(limits.values())):
        return False
    return True if limits else Unknown("this file does not say whether prompts have images")


def _sequence_parallel(side: Side) -> Truth:
    """Return whether the pass is switched on, or another that needs it."""
    view = side.resolution
    given = [part(view, "compilation_config", "pass_config", name) for name in _SEQUENCE_PARALLEL]
    if any(value is True for value in given):
        return True
    return next((value for value in given if isinstance(value, Unknown)), False)


def _flashinfer_experts(side: Side) -> Truth:
    """Return whether nothing takes FlashInfer away, first from 0.20.0 on (oracle/unquantized.py of vLLM)."""
    variable, backend = side.variable("VLLM_USE_FLASHINFER_MOE_FP16"), side.value("moe_backend")
    if side.machine.flashinfer is False or side.value("enable_lora") is True:
        return False
    if variable is not None and (not variable.known or str(variable.value) == "0"):
        return variable.value if isinstance(variable.value, Unknown) else False
    return _tested(backend, lambda name: name in (None, "auto", "flashinfer_cutlass", "flashinfer_trtllm"))


def _updated(side: Side) -> Truth:
    return _tested(side.config.facts.weight_updates, lambda when: when not in (None, WeightUpdates.NONE))


def _cache_survives(side: Side) -> Truth:
    facts = side.config.facts
    if facts.resets_prefix_cache is True or facts.salts_prefix_cache is True:
        return False
    if facts.resets_prefix_cache is None or isinstance(facts.resets_prefix_cache, Unknown):
        return Unknown("this file does not say whether the prefix cache is reset with every update")
    return True


def _adapters_on_experts(side: Side) -> Truth:
    modules = side.config.engine.get("lora_target_modules")
    if modules is None or not isinstance(modules.value, list):
        return Unknown("this file does not say whether adapters are on experts")
    return any("expert" in str(module) for module in modules.value)


def _padded_vocabulary(side: Side) -> Truth:
    model = architecture(side.resolution)
    if isinstance(model, Unknown):
        return model
    size = model.config.get("vocab_size")
    return size % _PADDED_TO != 0 if isinstance(size, int) else Unknown("the size of the vocabulary is not known")


def _blind_processors(side: Side) -> Truth:
    """Return whether processors are loaded for which nothing puts the generated tokens in."""
    passed = _tested(side.value("logits_processors"), bool)
    if side.version < _SAMPLED_TOKENS_PUT_IN:
        return passed if passed is not False else brings_logits_processors(side.config.path)
    if passed is not False or penalties(side):
        return False
    return brings_logits_processors(side.config.path)


def _deep_sleep(side: Side) -> Truth:
    """Return True for TRL, which sleeps at level 2 (trl/generation/vllm_generation.py:702 of f2cd577)."""
    return side.config.framework == "trl" or Unknown("this file does not say at which level the engine sleeps")


NAMED: Mapping[str, Condition] = {
    "second-runner": _condition("Model Runner V2 runs", "$engine.model_runner == V2"),
    "async-scheduling": _condition("async scheduling is on", "$engine.async_scheduling == true"),
    "blind-processors": Condition("custom logits processors are loaded", _blind_processors),
    "prefix-caching": _condition("prefix caching is on", "$engine.enable_prefix_caching == true"),
    "adapters": _condition("adapters are served", "$engine.enable_lora == true"),
    "adapters-on-experts": Condition("adapters are on experts", _adapters_on_experts),
    "sleeps": _condition("the engine sleeps", "$engine.enable_sleep_mode == true"),
    "deep-sleep": Condition("it sleeps at level 2", _deep_sleep),
    "eight-bit-cache": _condition(
        "the key-value cache has 8 bits", "$engine.kv_cache_dtype in (fp8, fp8_e4m3, fp8_e5m2)"
    ),
    "replays-routing": _condition("routed experts are returned", "$engine.enable_return_routed_experts == true"),
    "decode-graphs": _condition("decoding runs in CUDA graphs", f"$engine.cudagraph_mode in ({_DECODE_GRAPHS})"),
    "graphs": _condition("CUDA graphs are on", f"$engine.cudagraph_mode in ({_DECODE_GRAPHS}, PIECEWISE)"),
    "processed-logprobs": Condition(
        "processed logprobs are returned",
        lambda side: _tested(returned_logprobs(side), lambda returned: returned is Returned.PROCESSED),
    ),
    "temperature-not-one": Condition(
        "the temperature is not 1",
        lambda side: _tested(temperature(side), lambda heat: heat != 1 and heat >= GREEDY_BELOW),
    ),
    "half-precision-head": Condition(
        "the output head runs in half precision",
        lambda side: _tested(rollout_head_dtype(side), lambda dtype: dtype != Dtype.FLOAT32),
    ),
    "float32-head": Condition(
        "the output head runs in float32",
        lambda side: _tested(rollout_head_dtype(side), lambda dtype: dtype == Dtype.FLOAT32),
    ),
    "head-dtype-requested": Condition(
        "hf_overrides requests a head dtype", lambda side: requested_head_dtype(side) is not None
    ),
    "batch-invariance": Condition("batch invariance is requested", asks_for_batch_invariance),
    "filtered": Condition("top-k or top-p is set", lambda side: bool({"top_k", "top_p"} & set(filters(side)))),
    "penalised": Condition("a penalty is set", lambda side: bool(penalties(side))),
    "updated": Condition("weights are updated", _updated),
    "loaded": Condition(
        "new weights are only loaded, and nothing is derived from them again", _written_by(UpdatePath.LOADED)
    ),
    "processed": Condition("new weights are processed again after loading", _written_by(UpdatePath.PROCESSED)),
    "reloaded": Condition("weights come by vLLM's layerwise reload", _written_by(UpdatePath.RELOADED)),
    "in-place": Condition(
        "new weights are loaded into what was processed before", _written_by(UpdatePath.LOADED, UpdatePath.PROCESSED)
    ),
    "derived-again": Condition(
        "weights are derived again after every update", _written_by(UpdatePath.RELOADED, UpdatePath.PROCESSED)
    ),
    "cache-survives": Condition("the prefix cache is not reset with updates", _cache_survives),
    "sequence-parallel": Condition("sequence parallelism is on (pass_config.enable_sp)", _sequence_parallel),
    "mixture": _condition("the model is a mixture of experts", "$model.mixture"),
    "gemma4-mixture": Condition(
        "the model is a Gemma 4 with experts",
        lambda side: _tested(
            architecture(side.resolution), lambda model: model.kind.startswith("gemma4") and model.mixture
        ),
        _MODEL,
    ),
    "latent-attention": _condition("the model has multi-head latent attention", "$model.latent_attention"),
    "mamba2": _condition("the model has Mamba-2 layers", "$model.mamba2"),
    "padded-vocabulary": Condition("the vocabulary is no multiple of 64", _padded_vocabulary),
    "unquantized": Condition("weights are not quantized", _unquantized, _MODEL),
    "flashinfer-experts": Condition("FlashInfer's kernels for experts are not ruled out", _flashinfer_experts),
    "images": _condition("the model reads images", "$model.images"),
    "images-in-prompts": Condition("prompts have images", _images_in_prompts),
    "hopper": _condition("the GPU is a Hopper", "gpu == 9"),
    "blackwell": _condition("the GPU is a Blackwell of a data center", "gpu == 10"),
    "cpu": Condition("the engine runs on a CPU", lambda side: side.machine.platform == "cpu"),
}
