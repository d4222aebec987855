"""What all cells of a run share in every study: the model, the machine, and the prompts as token ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlaudit.laboratory.recorded_requests import RecordedRequests
from rlaudit.vllm.machine import Machine


@dataclass(frozen=True)
class RolloutContext:
    """`model_identity` tells the model from others; so do those of `other_models`, which some arms have instead.

    revision: the commit of a hub model that was found. device: cuda or cpu. gpus_to_score: by dtype, where not all.
    recorded: how a recorded training asked the prompts.
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
    gpus_to_score: Mapping[str, int] = field(default_factory=dict)
    recorded: RecordedRequests | None = None
