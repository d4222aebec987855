"""Rollout configs of a few settings."""

from typing import Any

from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.resolve import Resolution, resolve


def config_of(
    *, offline: bool = False, model: str | None = None, environment: dict[str, Any] | None = None, **engine: Any
) -> RolloutConfig:
    """What a file says: engine arguments by name, variables in `environment`."""

    def said(values: dict[str, Any]) -> dict[str, Setting]:
        return {name: Setting(name, value, value, Origin.FILE) for name, value in values.items()}

    path = Setting("model", model, model, Origin.FILE) if model is not None else None
    return RolloutConfig("vllm", "run.yaml", said(engine), {}, said(environment or {}), model=path, offline=offline)


def resolved(version: str, machine: str = "h100", **said: Any) -> Resolution:
    """A config under one release on one machine."""
    return resolve(config_of(**said), Catalogue.at(version), machine_named(machine))
