"""The engine, V0 or V1, that a process is expected to load, and the message if it loads the other one.

From 0.8.5 to 0.10.2 vLLM chooses the engine by the device and by unrelated settings. A user who compares V0 with V1
must not find out afterwards that both arms were V1. So a worker knows which engine is expected, and fails before it
generates if it has loaded the other one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from packaging.version import Version

from rlaudit.errors import UsageError
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolution.engine import FIRST_WITHOUT_V0, VARIABLE, EngineKind, has_v0, variables_for, why_v1_refuses
from rlaudit.vllm.resolve import Resolution, resolve


@dataclass(frozen=True)
class ExpectedEngine:
    """The engine that a release is expected to load, and why."""

    version: str
    # None if the recipe names none and the release's choice is unknown.
    kind: EngineKind | None
    # One clause.
    because: str
    # Whether the recipe names it.
    asked: bool
    # Why this release will not start with these settings; None if it will.
    refused: str | None = None

    def __str__(self) -> str:
        """`V0`, `V1 by default`, `V1, which will not start (the platform is a CPU)`."""
        if self.kind is None:
            return f"V0 or V1 ({self.because})"
        if self.refused is not None:
            return f"{self.kind}, which will not start ({self.refused})"
        chosen = self.asked or not has_v0(Version(self.version))
        return self.kind if chosen else f"{self.kind} by default"

    def as_job(self) -> dict[str, str] | None:
        """Return the worker's form of it; None if either engine is right."""
        if self.kind is None:
            return None
        other = "V0" if self.kind == "V1" else "V1"
        if self.asked:
            way_out = (
                f"Write `engine: {other}` where {other} is meant; else take away what keeps vLLM from {self.kind}."
            )
        else:
            way_out = "Write `engine: V0` or `engine: V1` at this point of the recipe."
        return {"kind": self.kind, "because": self.because, "way_out": way_out}


def expected_engine(
    version: str,
    requested: EngineKind | None,
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str],
    machine: Machine,
    model: str | None = None,
) -> ExpectedEngine:
    """Return the engine that a release should load with these arguments and variables on this machine.

    requested: the recipe's engine. If it is None, vLLM's own choice is expected.
    """
    resolution = resolution_of(version, engine_args, variables, machine, model)
    default = resolution.value("engine")
    kind = requested or (None if isinstance(default, Unknown) else default)
    refused = why_v1_refuses(resolution) if requested == "V1" else None
    if requested is not None:
        because = f"the recipe asks for {requested}"
    elif isinstance(default, Unknown):
        because = default.reason
    else:
        because = f"rlaudit expects {default}: {resolution.why_engine}"
    return ExpectedEngine(version, kind, because, requested is not None, refused)


def check_engine(kind: EngineKind | None, version: str, variables: Mapping[str, str], where: str) -> None:
    """Raise UsageError, naming `where`, if a release does not have the engine, or its variables contradict it."""
    if kind == "V0" and not has_v0(Version(version)):
        last = max(release for release in known_versions() if has_v0(release))
        raise UsageError(
            f"{where}: vLLM {version} has no engine V0, which was removed in {FIRST_WITHOUT_V0}",
            f"write `engine: V0` for {last} and older releases only, and `engine: V1` or nothing here",
        )
    written, needed = variables.get(VARIABLE), variables_for(kind, Version(version)).get(VARIABLE)
    if written is not None and needed is not None and written != needed:
        raise UsageError(
            f"{where}: `engine: {kind}` and the environment variable {VARIABLE}={written} contradict each other",
            f"take {VARIABLE} out of environment_variables: `engine` sets it where the release reads it",
        )


def resolution_of(
    version: str,
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str],
    machine: Machine,
    model: str | None = None,
) -> Resolution:
    """Return how `inspect` resolves an `LLM(...)` with these arguments and variables."""
    return resolve(config_of(engine_args, variables, model), Catalogue.at(version), machine)


def config_of(
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str],
    model: str | None = None,
    sampling: Mapping[str, Any] = MappingProxyType({}),
) -> RolloutConfig:
    """Return an `LLM(...)` with these arguments and variables as a config, with the parameters of its requests."""
    return RolloutConfig(
        framework="vllm",
        path="an arm",
        engine=_settings(engine_args),
        environment=_settings(variables),
        sampling=_settings(sampling),
        model=None if model is None else Setting("model", model, model, Origin.FILE),
        offline=True,
    )


def _settings(values: Mapping[str, Any]) -> dict[str, Setting]:
    return {name: Setting(name, value, value, Origin.FILE) for name, value in values.items()}
