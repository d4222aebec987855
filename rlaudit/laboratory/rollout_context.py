"""What all cells of a run share in every study: the model, the machine, and the prompts as token ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlaudit.laboratory.recorded_requests import RecordedRequests
from rlaudit.vllm.machine import Machine


@dataclass(frozen=True)
class RolloutContext:
    """What all cells of a run share."""

    model: str
    # The commit of a hub model.
    revision: str | None
    model_identity: Mapping[str, Any]
    accelerator_identity: Mapping[str, Any]
    # cuda or cpu.
    device: str
    machine: Machine
    prompt_token_ids: Sequence[Sequence[int]] = ()
    trust_remote_code: bool = False
    timeout_minutes: float = 20.0
    seed: int = 0
    # Identities of the models that some arms have instead.
    other_models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # By dtype, for dtypes that do not need all GPUs.
    gpus_to_score: Mapping[str, int] = field(default_factory=dict)
    # The recorded requests that the prompts are from.
    recorded: RecordedRequests | None = None
