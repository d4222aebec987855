"""Every fact that rules use about the trainer, and about how new weights reach the engine, with its values.

A reader of configs fills in the facts that it can read. The others are None; a fact that the config leaves open is
Unknown. Neither is ever fine. `RolloutConfig.trainer` keeps the origin, the place and the note of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from rlaudit.unknown import Unknown

Value = TypeVar("Value")
# Known, open, or not known to the reader.
Fact: TypeAlias = Value | Unknown | None


class WeightUpdates(StrEnum):
    """When the engine gets new weights."""

    NONE = "none"
    BETWEEN_ROLLOUTS = "between rollouts"
    IN_FLIGHT = "in flight"


class PauseMode(StrEnum):
    """What a pause for new weights does with running requests; none if weights are loaded without a pause."""

    NONE = "none"
    KEEP = "keep"
    WAIT = "wait"
    ABORT = "abort"


class UpdatePath(StrEnum):
    """The calls by which new weights come: which defects of vLLM show depends on them."""

    # `model.load_weights` and nothing else: what vLLM derives from weights after the first load stays as it was.
    LOADED = "loaded"
    # `load_weights`, then `process_weights_after_loading` over the whole model.
    PROCESSED = "processed"
    # vLLM's own layerwise reload: `reload_weights`, or start_weight_update to finish_weight_update.
    RELOADED = "reloaded"
    # Tensors in the kernels' layout, copied in place with all that is derived from them.
    COPIED = "copied"


class Dtype(StrEnum):
    """A dtype of a forward pass. The frameworks' and torch's other names for it are taken as well."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"

    @classmethod
    def named(cls, word: object) -> "Dtype | None":
        """Return the dtype that a word stands for: `torch.float32`, `bf16`, `half`."""
        return _WORDS.get(str(word).lower().removeprefix("torch."))

    @classmethod
    def _missing_(cls, value: object) -> "Dtype | None":
        return cls.named(value)


_WORDS = {
    **{dtype.value: dtype for dtype in Dtype},
    "float": Dtype.FLOAT32, "fp32": Dtype.FLOAT32,
    "bf16": Dtype.BFLOAT16,
    "half": Dtype.FLOAT16, "fp16": Dtype.FLOAT16,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class UpdateFacts:
    """How new weights reach the engine."""

    # When the engine gets them.
    weight_updates: Fact[WeightUpdates] = None
    # Whether the prefix cache is reset with every weight update.
    resets_prefix_cache: Fact[bool] = None
    # Whether prompts carry a cache salt that changes with the policy version.
    salts_prefix_cache: Fact[bool] = None
    # How pause_generation is called around a weight update.
    pause_mode: Fact[PauseMode] = None
    # Whether that pause clears the prefix cache (clear_cache).
    pause_clears_cache: Fact[bool] = None
    # Names of the keyword arguments that pause_generation is called with.
    pause_arguments: Fact[list[str]] = None
    # How the engine takes them.
    update_path: Fact[UpdatePath] = None
    # Methods of vLLM by which new weights came, as they were recorded.
    update_calls: Fact[list[str]] = None
    # How the engine's weights differ from what updates sent, if that was observed.
    weight_faults: Fact[list[str]] = None
    # How cached prefixes of older weights were served, as observed; empty if none was.
    stale_prefixes: Fact[str] = None


@dataclass(frozen=True, kw_only=True)
class TrainerFacts(UpdateFacts):
    """What the trainer computes with the rollouts, beside how it updates the engine's weights."""

    # Whether the trainer's logprobs are of logits / sampling temperature.
    divides_by_temperature: Fact[bool] = None
    # Whether the trainer applies the sampler's top-k, top-p and min-p.
    replays_filters: Fact[bool] = None
    # Whether the returned logprobs enter loss, correction or a metric.
    uses_rollout_logprobs: Fact[bool] = None
    # Whether old logprobs are recomputed by the trainer under the rollout's weights.
    recomputes_old_logprobs: Fact[bool] = None
    # Whether prompt_logprobs of the engine are used for a recomputation.
    reads_prompt_logprobs: Fact[bool] = None
    # Dtype of the trainer's forward pass.
    dtype: Fact[Dtype] = None
    # Dtype of the trainer's lm_head, whether it differs from `dtype` or equals it.
    head_dtype: Fact[Dtype] = None
    # Dtype of the engine's lm_head, if a plug-in of the framework sets it.
    rollout_head_dtype: Fact[Dtype] = None
    # Whether a rollout correction (TIS, MIS, IcePop) is on.
    importance_sampling_correction: Fact[bool] = None
    # Which rollout correction, as the framework calls it.
    importance_sampling_mode: Fact[str] = None
    # Whether the engine and the trainer compute with the same weights, quantized ones included.
    shares_weights: Fact[bool] = None
    # Rollout engines that run side by side (not tensor parallel ranks).
    replicas: Fact[int] = None
    # Whether every replica gets its own seed.
    seeds_replicas: Fact[bool] = None
    # Whether the trainer computes logprobs of sampled tokens, as observed.
    scores_rollouts: Fact[bool] = None
    # Whether a rollout-trainer mismatch metric is logged as configured.
    logs_mismatch: Fact[bool] = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the facts of a config; a value that a fact cannot have leaves it open."""
        return cls(**{name: fact_of(name, value) for name, value in values.items()})

    def given(self) -> dict[str, Any]:
        """Return the facts that are known or open, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


OF_UPDATES = frozenset(field.name for field in fields(UpdateFacts))


@lru_cache(maxsize=1)
def fact_types() -> Mapping[str, Any]:
    """Return the type of each fact's known values: bool, int, str, list[str] or one of the enums above."""
    return {name: get_args(hint)[0] for name, hint in get_type_hints(TrainerFacts).items()}


def fact_of(name: str, value: Any) -> Any:
    """Return a value as the type that a fact has, Unknown if it is none. Raises ValueError if no fact has the name."""
    if name not in fact_types():
        raise ValueError(f"{name} is no trainer fact; known: {', '.join(fact_types())}")
    kind = fact_types()[name]
    if value is None or isinstance(value, Unknown):
        return value
    if get_origin(kind) is None and issubclass(kind, StrEnum):
        try:
            return kind(value)
        except ValueError:
            return Unknown(f"{name} is {value!r}, which is none of {', '.join(kind)}")
    is_taken = isinstance(value, get_origin(kind) or kind) and (kind is bool or not isinstance(value, bool))
    return value if is_taken else Unknown(f"{name} is {value!r}, and {getattr(kind, '__name__', kind)} is expected")
