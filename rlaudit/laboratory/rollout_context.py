"""What all cells of a run share, whatever its study: the model, the machine, and the prompts as token ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.models.model_identity import identities_in
from rlaudit.vllm.machine import Machine


@dataclass(frozen=True)
class RolloutContext:
    """`model_identity` tells the model from others; so do those of `other_models`, which some arms have instead.

    revision: the commit of a hub model that was found. device: cuda or cpu.
    """

    model: str
    revision: str | None
    model_identity: Mapping[str, Any]
    accelerator_identity: Mapping[str, Any]
    device: str
    machine: Machine
    prompt_token_ids: Sequence[Sequence[int]] = ()
    trust_remote_code: bool = False
    timeout_minutes: float = 20.0
    seed: int = 0
    other_models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def identity(
        self,
        environment: Environment,
        variables: Mapping[str, str],
        engine_args: Mapping[str, Any],
        model: str | None = None,
    ) -> dict[str, Any]:
        """What a result depends on and the job of an engine does not say. `model`: one of the others."""
        return {
            "variables": dict(variables),
            "environment": {"name": environment.spec.name, "lock": list(environment.lock)},
            "model": dict(self.model_identity if model is None else self.other_models[model]),
            "named_in_engine_args": identities_in(engine_args),
            "accelerator": dict(self.accelerator_identity),
        }
