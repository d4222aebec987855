"""What one arm does to its engine and its trainer: the plain settings, before any process is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from packaging.version import Version

from rlaudit.vllm.resolution.engine import EngineKind, variables_for

TemperatureHandling = Literal["divide", "ignore"]
Concurrency = Literal["batch", "alone"]


@dataclass(frozen=True)
class TrainerSettings:
    """How the trainer recomputes logprobs.

    `temperature`: "divide" divides its logits by the sampling temperature, "ignore" does not.
    `replay_filters`: whether it repeats the sampler's top-k, top-p and min-p before it normalises.
    `head_dtype`: "same" computes the head in `dtype`.
    """

    dtype: str = "bfloat16"
    head_dtype: str = "same"
    attention: str = "sdpa"
    temperature: TemperatureHandling = "divide"
    replay_filters: bool = False
    batch_tokens: int = 4096

    @property
    def resolved_head_dtype(self) -> str:
        """The dtype the head is really computed in."""
        return self.dtype if self.head_dtype == "same" else self.head_dtype


@dataclass(frozen=True)
class Requirement:
    """What a factor needs of a vLLM release: all of `engine_args`, and one of `modules` where any are named."""

    factor: str
    engine_args: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Treatment:
    """Everything of an arm that a factor may change. `engine_args` and `sampling` are in vLLM's own names.

    `engine` is the engine that the arm is about, V0 or V1; None leaves it to the release. `compiles` and
    `captures_graphs` (CUDA graphs) are None unless one is requested without the other.
    `cuda_engine_args` and `cuda_variables` are companions for a CUDA engine only, the arguments only if the release
    knows them: a CPU engine with another platform's attention backend would not run what was requested.
    """

    version: str
    engine: EngineKind | None = None
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    cuda_engine_args: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    cuda_variables: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    trainer: TrainerSettings = TrainerSettings()
    fp32_head: bool = False
    compiles: bool | None = None
    captures_graphs: bool | None = None
    concurrency: Concurrency = "batch"
    requires: tuple[Requirement, ...] = ()

    @property
    def declared(self) -> dict[str, str]:
        """The variables of the engine process on any device: those that choose V0 or V1, and the recipe's."""
        return {**variables_for(self.engine, Version(self.version)), **self.variables}

    def with_engine_args(self, factor: str, **engine_args: Any) -> "Treatment":
        """Return the treatment with more engine arguments, which the release must have for `factor` to take part."""
        return replace(
            self,
            engine_args={**self.engine_args, **engine_args},
            requires=(*self.requires, Requirement(factor, engine_args=tuple(engine_args))),
        )

    def with_variables(self, **variables: str) -> "Treatment":
        """Return the same treatment with more environment variables."""
        return replace(self, variables={**self.variables, **variables})
