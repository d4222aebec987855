"""The cell of an engine process, in any study."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.hardware.dtypes import kernel_cache
from rlaudit.engines.models.model_identity import identities_in
from rlaudit.engines.vllm.engine import gpus_of
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.study import EngineWanted
from rlaudit.vllm.resolution.block_size import smallest_cpu_block


@dataclass(frozen=True)
class EngineProcess:
    """What is started: a shipped script, the files that it loads beside itself, and the engine in it.

    `job` is what the script reads besides. refusal: the words in which an engine says that it cannot do this. identity:
    what the result depends on besides. timed: when a step begins may change what is seen.
    """

    script: Path
    sources: tuple[Path, ...]
    engine: EngineWanted
    job: Mapping[str, Any]
    timeout_minutes: float | None = None
    refusal: re.Pattern[str] | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    timed: bool = False


def usual_engine_args(version: str, dtype: str, device: str) -> dict[str, Any]:
    """Return what engines of small experiments start with on cuda or cpu, unless a recipe says otherwise.

    On a processor eagerly, as compiling takes longer than sampling does, and with blocks that short prompts can fill.
    """
    on_cpu = {"enforce_eager": True, "block_size": smallest_cpu_block(Version(version))} if device == "cpu" else {}
    return {"dtype": dtype, **on_cpu}


def engine_cell(context: RolloutContext, environment: Environment, process: EngineProcess) -> Cell:
    """Return the process in its environment, on the run's model and accelerator."""
    wanted = process.engine
    own, variables = wanted.model, wanted.variables(context.device)
    identity = context.model_identity if own is None else context.other_models[own]
    return Cell(
        job={
            "script": shipped(process.script),
            "model": own or context.model,
            "revision": context.revision if own is None else identity["revision"],
            "trust_remote_code": context.trust_remote_code,
            "engine": wanted.expected(context.machine, context.model).as_job(),
            "engine_args": dict(wanted.engine_args),
            **process.job,
        },
        command=environment.command,
        variables={**environment.variables, **kernel_cache(variables), **variables},
        timeout_seconds=60.0 * (process.timeout_minutes or context.timeout_minutes),
        identity={
            "variables": dict(variables),
            "environment": {"name": environment.spec.name, "lock": list(environment.lock)},
            "model": dict(identity),
            "named_in_engine_args": identities_in(wanted.engine_args),
            "accelerator": dict(context.accelerator_identity),
            **process.identity,
        },
        sources=process.sources,
        refusal=process.refusal,
        gpus=gpus_of(wanted.engine_args),
        timed=process.timed,
    )
