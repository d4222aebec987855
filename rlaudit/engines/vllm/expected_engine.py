"""Which engine, V0 or V1, a process is expected to load, and what to say when it loads the other one.

From 0.8.5 to 0.10.2 vLLM chooses by itself, from the device and from settings that are about something else. A user
who compares V0 with V1 must not find out afterwards that both arms were V1: a worker knows which engine is expected,
and fails before it generates if it has loaded the other one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """kind: None if the recipe names none and it cannot be known. because: one clause. asked: whether the recipe names
    it, rather than leaving it to the release. refused: why this release will not start with these settings; None if
    nothing says so."""

    version: str
    kind: EngineKind | None
    because: str
    asked: bool
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
        """Return it as the worker's job has it; None if either engine is right."""
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
    asked: EngineKind | None,
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str],
    machine: Machine,
    model: str | None = None,
) -> ExpectedEngine:
    """Return the engine that a release is to load with these arguments and variables on this machine.

    `asked` is what the recipe says, None if it says nothing; then vLLM's own decision is what is expected.
    """
    resolution = resolution_of(version, engine_args, variables, machine, model)
    found = resolution.value("engine")
    kind = asked or (None if isinstance(found, Unknown) else found)
    refused = why_v1_refuses(resolution) if asked == "V1" else None
    if asked is not None:
        because = f"the recipe asks for {asked}"
    elif isinstance(found, Unknown):
        because = found.reason
    else:
        because = f"rlaudit expects {found}: {resolution.why_engine}"
    return ExpectedEngine(version, kind, because, asked is not None, refused)


def check_engine(kind: EngineKind | None, version: str, variables: Mapping[str, str], where: str) -> None:
    """Raise UsageError, naming `where`, if a release cannot be the requested engine, or its variables say another."""
    if kind == "V0" and not has_v0(Version(version)):
        last = max(known for known in known_versions() if has_v0(known))
        raise UsageError(
            f"{where}: vLLM {version} has no engine V0, which was removed in {FIRST_WITHOUT_V0}",
            f"write `engine: V0` for {last} and older releases only, and `engine: V1` or nothing here",
        )
    told, meant = variables.get(VARIABLE), variables_for(kind, Version(version)).get(VARIABLE)
    if told is not None and meant is not None and told != meant:
        raise UsageError(
            f"{where}: `engine: {kind}` and the environment variable {VARIABLE}={told} contradict each other",
            f"take {VARIABLE} out of environment_variables: `engine` sets it where the release reads it",
        )


def resolution_of(
    version: str,
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str],
    machine: Machine,
    model: str | None = None,
) -> Resolution:
    """Return what `inspect` would say of an `LLM(...)` with these arguments and variables."""
    config = RolloutConfig(
        framework="vllm",
        path="an arm",
        engine=_said(engine_args),
        environment=_said(variables),
        model=None if model is None else Setting("model", model, model, Origin.FILE),
        offline=True,
    )
    return resolve(config, Catalogue.at(version), machine)


def _said(values: Mapping[str, Any]) -> dict[str, Setting]:
    return {name: Setting(name, value, value, Origin.FILE) for name, value in values.items()}
