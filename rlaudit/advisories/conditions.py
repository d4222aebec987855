"""What an advisory's conditions may say: names for those that several share or that take code, and the forms of others.

Each condition is true, false, or Unknown with why the config leaves it open.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.audit.audit import Side
from rlaudit.audit.batch_invariance import asks_for_batch_invariance
from rlaudit.audit.head_dtype import requested_head_dtype, rollout_head_dtype
from rlaudit.audit.returned_logprobs import Returned, returned_logprobs
from rlaudit.audit.sampling import GREEDY_BELOW, filters, penalties, temperature
from rlaudit.audit.update_path import update_path
from rlaudit.did_you_mean import did_you_mean
from rlaudit.settings.trainer_facts import Dtype, UpdatePath, WeightUpdates, fact_of
from rlaudit.unknown import Unknown
from rlaudit.vllm.architecture import Architecture, architecture
from rlaudit.vllm.machine import UnreadMachine
from rlaudit.vllm.resolve import number, object_of

Truth = bool | Unknown
Predicate = Callable[[Side], Truth]

_PADDED_TO = 64  # DEFAULT_VOCAB_PADDING_SIZE of vLLM
_MODEL = "the model"
_DECODE_GRAPHS = ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


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
    """Return the condition that an advisory writes: a name of NAMED, or a sentence with one of FORMS.

    Raises ValueError for another name or form.
    """
    if isinstance(written, str):
        if written not in NAMED:
            raise ValueError(f"no condition is called {written}; {did_you_mean(written, NAMED, ', '.join(NAMED))}")
        return NAMED[written]
    if "says" not in written:
        raise ValueError(f"a condition with {', '.join(written)} has no sentence in `says`")
    form = {key: value for key, value in written.items() if key != "says"}
    return Condition(written["says"], _predicate(form), _MODEL if "model" in form else "")


def _predicate(written: Any) -> Predicate:
    if isinstance(written, str):
        return condition_of(written).holds
    for keys, form in FORMS.items():
        if set(keys) == set(written):
            return form(*(written[key] for key in keys))
    forms = ", ".join(" with ".join(keys) for keys in FORMS)
    raise ValueError(f"no condition has the keys {', '.join(written)}; the forms are {forms}")


def _tested(value: Any, holds: Callable[[Any], bool]) -> Truth:
    """Return whether a predicate holds for a value; the value itself if it is Unknown."""
    return value if isinstance(value, Unknown) else holds(value)


def _one_or_more(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _setting_is(name: str, wanted: Any) -> Predicate:
    """Test whether an engine argument or a derived value of vLLM runs with the wanted value, or one of several."""
    return lambda side: _tested(side.value(name), lambda value: value in _one_or_more(wanted))


def _setting_above(name: str, least: int) -> Predicate:
    return lambda side: _tested(side.value(name), lambda value: (number(value) or 0) > least)


def _sampling_set(name: str) -> Predicate:
    return lambda side: side.config.sampling.get(name) is not None


def _sampling_above(name: str, least: int) -> Predicate:
    return lambda side: _tested(side.sampling(name), lambda value: (number(value) or 0) > least)


def _trainer_is(name: str, wanted: Any) -> Predicate:
    """Test whether a fact about the trainer is known and as wanted. Raises ValueError if it can never be."""
    value = fact_of(name, wanted)
    if isinstance(value, Unknown):
        raise ValueError(value.reason)
    return lambda side: bool(getattr(side.config.facts, name) == value)


def _model_has(trait: str) -> Predicate:
    return _model(lambda kind: bool(getattr(kind, trait)))


def _model_is(trait: str, wanted: Any) -> Predicate:
    return _model(lambda kind: getattr(kind, trait) in _one_or_more(wanted))


def _model(holds: Callable[[Architecture], bool]) -> Predicate:
    return lambda side: _tested(architecture(side.resolution), holds)


def _gpu(families: list[int]) -> Predicate:
    """Test whether the GPU is of one of some families: 9 for Hopper, 10 for a Blackwell of a data center."""

    def holds(side: Side) -> Truth:
        machine = side.machine
        return not isinstance(machine, UnreadMachine) and machine.capability // 10 in families

    return holds


def _since(release: str) -> Predicate:
    first = Version(release)
    return lambda side: side.version >= first


def _framework(name: str, since: str) -> Predicate:
    """Test whether a framework runs with this vLLM or a later one."""
    first = Version(since)
    return lambda side: side.config.framework == name and side.version >= first


def _all(parts: Iterable[Any]) -> Predicate:
    predicates = [_predicate(part) for part in parts]
    return lambda side: _combined(False, [predicate(side) for predicate in predicates])


def _any(parts: Iterable[Any]) -> Predicate:
    predicates = [_predicate(part) for part in parts]
    return lambda side: _combined(True, [predicate(side) for predicate in predicates])


def _combined(deciding: bool, truths: list[Truth]) -> Truth:
    """Return the deciding value if one of the truths has it, else one that is open, else the other value."""
    if deciding in truths:
        return deciding
    return next((value for value in truths if isinstance(value, Unknown)), not deciding)


def _not(part: Any) -> Predicate:
    predicate = _predicate(part)
    return lambda side: _tested(predicate(side), lambda value: not value)


# The keys of a condition beside `says` -> the function that takes their values.
FORMS: Mapping[tuple[str, ...], Callable[..., Predicate]] = {
    ("setting", "is"): _setting_is,
    ("setting", "above"): _setting_above,
    ("sampling",): _sampling_set,
    ("sampling", "above"): _sampling_above,
    ("trainer", "is"): _trainer_is,
    ("model",): _model_has,
    ("model", "is"): _model_is,
    ("gpu",): _gpu,
    ("since",): _since,
    ("framework", "since"): _framework,
    ("all",): _all,
    ("any",): _any,
    ("not",): _not,
}


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
    return True if limits else Unknown("whether prompts have images is not told by this file")


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
        return Unknown("whether the prefix cache is reset with every update is not told by this file")
    return True


def _adapters_on_experts(side: Side) -> Truth:
    modules = side.config.engine.get("lora_target_modules")
    if modules is None or not isinstance(modules.value, list):
        return Unknown("whether adapters are on experts is not told by this file")
    return any("expert" in str(module) for module in modules.value)


def _padded_vocabulary(side: Side) -> Truth:
    model = architecture(side.resolution)
    if isinstance(model, Unknown):
        return model
    size = model.config.get("vocab_size")
    return size % _PADDED_TO != 0 if isinstance(size, int) else Unknown("the size of the vocabulary is not told")


def _deep_sleep(side: Side) -> Truth:
    """Return True for TRL, which sleeps at level 2 (trl/generation/vllm_generation.py:702 of f2cd577)."""
    return side.config.framework == "trl" or Unknown("at which level the engine sleeps is not told by this file")


NAMED: Mapping[str, Condition] = {
    "second-runner": Condition("Model Runner V2 runs", _setting_is("model_runner", "V2")),
    "async-scheduling": Condition("async scheduling is on", _setting_is("async_scheduling", True)),
    "prefix-caching": Condition("prefix caching is on", _setting_is("enable_prefix_caching", True)),
    "adapters": Condition("adapters are served", _setting_is("enable_lora", True)),
    "adapters-on-experts": Condition("adapters are on experts", _adapters_on_experts),
    "sleeps": Condition("the engine sleeps", _setting_is("enable_sleep_mode", True)),
    "deep-sleep": Condition("it sleeps at level 2", _deep_sleep),
    "eight-bit-cache": Condition(
        "the key-value cache has 8 bits", _setting_is("kv_cache_dtype", ["fp8", "fp8_e4m3", "fp8_e5m2"])
    ),
    "replays-routing": Condition("routed experts are returned", _setting_is("enable_return_routed_experts", True)),
    "decode-graphs": Condition("decoding runs in CUDA graphs", _setting_is("cudagraph_mode", [*_DECODE_GRAPHS])),
    "graphs": Condition("CUDA graphs are on", _setting_is("cudagraph_mode", [*_DECODE_GRAPHS, "PIECEWISE"])),
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
        "hf_overrides asks for a head dtype", lambda side: requested_head_dtype(side) is not None
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
    "derived-again": Condition(
        "weights are derived again after every update", _written_by(UpdatePath.RELOADED, UpdatePath.PROCESSED)
    ),
    "cache-survives": Condition("the prefix cache is not reset with updates", _cache_survives),
    "mixture": Condition("the model is a mixture of experts", _model_has("mixture"), _MODEL),
    "gemma4-mixture": Condition(
        "the model is a Gemma 4 with experts",
        _model(lambda kind: kind.kind.startswith("gemma4") and kind.mixture),
        _MODEL,
    ),
    "latent-attention": Condition("the model has multi-head latent attention", _model_has("latent_attention"), _MODEL),
    "mamba2": Condition("the model has Mamba-2 layers", _model_has("mamba2"), _MODEL),
    "padded-vocabulary": Condition("the vocabulary is no multiple of 64", _padded_vocabulary),
    "unquantized": Condition("weights are not quantized", _unquantized, _MODEL),
    "flashinfer-experts": Condition("FlashInfer's kernels for experts are not ruled out", _flashinfer_experts),
    "images": Condition("the model reads images", _model_has("images"), _MODEL),
    "images-in-prompts": Condition("prompts have images", _images_in_prompts),
    "hopper": Condition("the GPU is a Hopper", _gpu([9])),
    "blackwell": Condition("the GPU is a Blackwell of a data center", _gpu([10])),
    "cpu": Condition("the engine runs on a CPU", lambda side: side.machine.platform == "cpu"),
}
