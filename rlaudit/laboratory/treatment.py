"""The settings of one arm's engine and trainer, before any process is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from packaging.version import Version

from rlaudit.vllm.resolution.engine import EngineKind, variables_for

TemperatureHandling = Literal["divide", "ignore"]
Concurrency = Literal["batch", "alone"]


@dataclass(frozen=True)
class TrainerSettings:
    """How the trainer recomputes logprobs."""

    dtype: str = "bfloat16"
    # "same" computes the head in `dtype`.
    head_dtype: str = "same"
    attention: str = "sdpa"
    # Whether it divides its logits by the sampling temperature.
    temperature: TemperatureHandling = "divide"
    # Whether it applies the sampler's top-k, top-p and min-p before it normalises.
    replay_filters: bool = False
    batch_tokens: int = 4096

    @property
    def resolved_head_dtype(self) -> str:
        """The dtype in which the head is computed."""
        return self.dtype if self.head_dtype == "same" else self.head_dtype


@dataclass(frozen=True)
class Requirement:
    """What a factor needs of a vLLM release: all of `engine_args`, and one of `modules` if any are named."""

    factor: str
    engine_args: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Treatment:
    """Everything of an arm that a factor may change. `engine_args` and `sampling` have vLLM's names."""

    version: str
    # V0 or V1; None leaves it to the release.
    engine: EngineKind | None = None
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    # For a CUDA engine only, if the release knows them: a CPU engine with another platform's attention backend would
    # not run what was requested.
    cuda_engine_args: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    # For a CUDA engine only.
    cuda_variables: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    trainer: TrainerSettings = TrainerSettings()
    fp32_head: bool = False
    # None unless one of torch.compile and CUDA graphs is requested without the other.
    compiles: bool | None = None
    captures_graphs: bool | None = None
    concurrency: Concurrency = "batch"
    requires: tuple[Requirement, ...] = ()

    @property
    def declared(self) -> dict[str, str]:
        """The variables of the engine process on any device: those that choose V0 or V1, and the recipe's."""
        return {**variables_for(self.engine, Version(self.version)), **self.variables}

    def with_engine_args(self, factor: str, **engine_args: Any) -> "Treatment":
        """Return the treatment with more engine arguments, which `factor` requires of the release."""
        return replace(
            self,
            engine_args={**self.engine_args, **engine_args},
            requires=(*self.requires, Requirement(factor, engine_args=tuple(engine_args))),
        )

    def with_variables(self, **variables: str) -> "Treatment":
        """Return the same treatment with more environment variables."""
        return replace(self, variables={**self.variables, **variables})
