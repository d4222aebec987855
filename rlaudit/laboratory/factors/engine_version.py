"""The vLLM release itself: any version from 0.8.5 on, and behind it which engine, as in `0.8.5 V0`.

Releases up to 0.10.2 have two engines. Without a word behind the version the release chooses by itself. A V0 beside a
V1 of one release separates what the engine changed from what the version did.
"""

from dataclasses import replace

from rlaudit.engines.environments.environment_spec import engine_spec
from rlaudit.errors import UsageError
from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, never
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer
from rlaudit.vllm.resolution.engine import EngineKind

ENGINES: dict[str, EngineKind | None] = {"": None, "V0": "V0", "V1": "V1"}


def set_level(treatment: Treatment, level: str) -> Treatment:
    """Return the same settings under another release, as the engine that the level names or as the release chooses."""
    version, _, kind = level.partition(" ")
    if kind not in ENGINES:
        raise UsageError(
            f"factor engine-version has no level {level!r}: {kind!r} is no engine",
            "write a release, such as 0.18.1, or a release and its engine, such as 0.8.5 V0",
        )
    return replace(treatment, version=engine_spec(version, "cpu").version, engine=ENGINES[kind])


def observe(trace: ArmTrace) -> Observation:
    """Return the release whose environment ran, and the engine that was loaded."""
    level = f"{trace.treatment.version} {trace.resolved['engine']}"
    return Observation(level, f"vLLM {trace.treatment.version}, engine {trace.resolved['engine']}")


FACTOR = Factor(
    name="engine-version",
    layer=Layer.INFERENCE_PATH,
    levels=(),
    set_level=set_level,
    observe=observe,
    setting="vllm",
    # The version is what such an experiment compares already.
    move=never,
)
