"""The cell of an engine process, in any study."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.hardware.dtypes import kernel_cache
from rlaudit.engines.inside.engine import gpus_of
from rlaudit.engines.models.model_identity import identities_in
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.study import EngineWanted
from rlaudit.vllm.resolution.block_size import smallest_cpu_block


def usual_engine_args(version: str, dtype: str, device: str) -> dict[str, Any]:
    """Return the default arguments of engines in small experiments, on cuda or cpu.

    On a processor engines are eager, because compiling takes longer than sampling, with blocks that short prompts fill.
    """
    on_cpu = {"enforce_eager": True, "block_size": smallest_cpu_block(Version(version))} if device == "cpu" else {}
    return {"dtype": dtype, **on_cpu}


def engine_cell(
    context: RolloutContext,
    environment: Environment,
    engine: EngineWanted,
    script: Path,
    sources: tuple[Path, ...],
    job: Mapping[str, Any],
    *,
    timeout_minutes: float | None = None,
    refusal: re.Pattern[str] | None = None,
    identity: Mapping[str, Any] | None = None,
    timed: bool = False,
) -> Cell:
    """Return the process of an engine in its environment, on the run's model and accelerator.

    script: a shipped one, which loads the `sources` beside itself and reads `job` in addition to the keys of every
    engine's script. refusal: matches the message of an engine that does not support this. identity: what else the
    result depends on. timed: whether the result depends on when a step begins.
    """
    variables = engine.variables(context.device)
    model = context.model_identity if engine.model is None else context.other_models[engine.model]
    return Cell(
        job={
            "script": shipped(script),
            "model": engine.model or context.model,
            "revision": context.revision if engine.model is None else model["revision"],
            "trust_remote_code": context.trust_remote_code,
            "engine": engine.expected(context.machine, context.model).as_job(),
            "engine_args": dict(engine.engine_args),
            **job,
        },
        command=environment.command,
        variables={**environment.variables, **kernel_cache(variables), **variables},
        timeout_seconds=60.0 * (timeout_minutes or context.timeout_minutes),
        identity={
            "variables": variables,
            "environment": {"name": environment.spec.name, "lock": list(environment.lock)},
            "model": dict(model),
            "named_in_engine_args": identities_in(engine.engine_args),
            "accelerator": dict(context.accelerator_identity),
            **(identity or {}),
        },
        sources=sources,
        refusal=refusal,
        gpus=gpus_of(engine.engine_args),
        timed=timed,
    )
