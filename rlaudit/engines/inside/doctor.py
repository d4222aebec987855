"""Starts an engine on a tiny random model, and reports whether it starts and generates.

It starts two engines at most: the release's default, and the other one if the release has V0 and V1. The loaded engine
counts, not the requested one: if `inspect` and `ablate` expect another, it is a failure. Engines are eager, because
compiling takes longer than everything else. Whether a feature works on this machine (batch invariance, a logprobs mode)
is for an ablation to find.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.engines.cells.handed_over import hand_over
from rlaudit.engines.cells.launch import Outcome, launch, shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.environments.health import missing_for_triton
from rlaudit.engines.hardware.accelerator import detect, machine_of
from rlaudit.engines.hardware.visible_gpus import gpu_variables
from rlaudit.engines.inside.expected_engine import expected_engine
from rlaudit.files.cache_folder import cache_folder
from rlaudit.text.counted import counted
from rlaudit.vllm.machine import Machine, machine_named
from rlaudit.vllm.resolution.block_size import smallest_cpu_block
from rlaudit.vllm.resolution.engine import EngineKind, has_v0, variables_for

_SCRIPTS = Path(__file__).with_name("scripts")
_SECONDS = 600.0
# Longer than any block of the KV cache, so that the second round can reuse one.
_PROMPT = list(range(10, 58))
_ENGINE_ARGS = {
    "skip_tokenizer_init": True,
    "max_model_len": 256,
    "max_num_seqs": 8,
    "enforce_eager": True,
    "gpu_memory_utilization": 0.2,
}


GPU_BLOCK = 16  # the default of every release for models without latent attention
_AMPERE = 80  # the first GPUs that vLLM runs in bfloat16


@dataclass(frozen=True)
class Symptom:
    """The result of one check."""

    name: str
    # None if it was not tried or does not exist in this release.
    works: bool | None
    says: str


@dataclass(frozen=True)
class Diagnosis:
    """The results of all checks of an environment."""

    environment: Environment
    symptoms: tuple[Symptom, ...]

    @property
    def healthy(self) -> bool:
        """Whether the engine starts and generates; a missing feature is no illness."""
        return {"starts", "generates"} <= {symptom.name for symptom in self.symptoms if symptom.works}


def scratch() -> Path:
    """Return the doctor's folder, which is always the same, so that a container can mount it."""
    folder = cache_folder() / "doctor"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def examine(environment: Environment, report: Callable[[str], None]) -> Diagnosis:
    """Start the engine and check it. A failure is a symptom with the engine's own words, never an exception.

    Raises NotFinished if a CUDA build cannot be started on the machine's GPU.
    """
    devices = () if environment.spec.build == "cpu" else detect().devices
    variables = {**environment.variables, **gpu_variables(devices, environment.spec)}
    environment = replace(environment, variables=variables)
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    try:
        return Diagnosis(environment, tuple(_examine(environment, folder, report)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _examine(environment: Environment, folder: Path, report: Callable[[str], None]) -> list[Symptom]:
    name = environment.spec.name
    model = _run(environment, folder / "tiny", "tiny_model.py", {"output": str(folder / "model"), "seed": 0})
    if model.failure:
        return [Symptom("imports", False, model.failure.message)]
    symptoms = [Symptom("imports", True, _packages(environment))]
    if environment.spec.build == "cuda":
        missing = missing_for_triton(environment.command)
        symptoms.append(Symptom("compiles kernels", not missing, "; ".join(missing) or "a C compiler and Python.h"))

    report(f"{name}: starting the engine as it is by default")
    default = _start(environment, folder / "default")
    symptoms += _start_and_generation(default)
    if default.failure is None and has_v0(Version(environment.spec.version)):
        symptoms.append(_other_engine(environment, default, folder, report))
    return symptoms


def _start(environment: Environment, cell: Path, engine: EngineKind | None = None) -> Outcome:
    version, machine = environment.spec.version, machine_for(environment)
    arguments = {**_ENGINE_ARGS, **arguments_on(machine, version)}
    declared = variables_for(engine, Version(version))
    requests = [{"prompt": 0, "sample": 0, "round": turn, "seed": turn} for turn in range(2)]
    job = {
        "model": str(cell.parent / "model"),
        "engine": expected_engine(version, engine, arguments, declared, machine).as_job(),
        "engine_args": arguments,
        "optional_engine_args": {},
        "reads": {},
        "sampling": {"temperature": 0.7, "top_p": 0.9, "max_tokens": 16, "ignore_eos": True},
        "top_logprobs": 2,
        "prompt_token_ids": [_PROMPT],
        "requests": requests,
        "concurrency": "batch",
        "fp32_head": False,
    }
    return _run(environment, cell, "generate.py", job, declared)


def machine_for(environment: Environment) -> Machine:
    """Return the machine that this environment's engines run on: a CPU build uses no GPU."""
    return machine_named("cpu") if environment.spec.build == "cpu" else machine_of(detect())


def arguments_on(machine: Machine, version: str) -> dict[str, Any]:
    """Return the dtype and block size with which recipes start a release; blocks are shorter than their prompts."""
    block = smallest_cpu_block(Version(version)) if machine.platform == "cpu" else GPU_BLOCK
    return {"dtype": dtype_on(machine), "block_size": block}


def dtype_on(machine: Machine) -> str:
    """Return the dtype of recipes: half precision on a GPU, float32 on a CPU. It also decides between V0 and V1."""
    if machine.platform == "cpu":
        return "float32"
    return "bfloat16" if machine.capability >= _AMPERE else "float16"


def _other_engine(environment: Environment, default: Outcome, folder: Path, report: Callable[[str], None]) -> Symptom:
    """Return whether the release can also start the engine that is not its default."""
    version = environment.spec.version
    other: EngineKind = "V0" if default.result["resolved"]["engine"] == "V1" else "V1"
    name = f"engine {other}"
    machine = machine_for(environment)
    variables = variables_for(other, Version(version))
    expected = expected_engine(version, other, {"dtype": dtype_on(machine)}, variables, machine)
    if expected.refused is not None:
        return Symptom(name, None, f"not on this machine: {expected.refused}")
    report(f"{environment.spec.name}: starting it as {other}")
    return _outcome(name, _start(environment, folder / "other", other), "starts")


def _run(
    environment: Environment,
    cell: Path,
    script: str,
    job: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
) -> Outcome:
    cell.mkdir()
    hand_over(cell, "job.json", {"script": shipped(_SCRIPTS / script), **job})
    declared = {"VLLM_CPU_KVCACHE_SPACE": "1", **environment.variables, **(variables or {})}
    return launch(cell, environment.command, declared, _SECONDS)


def _packages(environment: Environment) -> str:
    versions = environment.versions
    names = ("python", "torch", "transformers", "numpy")
    return ", ".join(f"{name} {versions[name]}" for name in names if name in versions)


def _start_and_generation(outcome: Outcome) -> list[Symptom]:
    if outcome.failure:
        return [_outcome("starts", outcome, "")]
    resolved = outcome.result["resolved"]
    seconds = outcome.result["seconds"]
    tokens = outcome.result["generated_tokens"]
    return [
        Symptom("starts", True, f"{resolved['engine']} engine, {seconds:.0f} s with generation"),
        Symptom("generates", tokens > 0, f"{counted(tokens, 'token')} with logprobs"),
    ]


def _outcome(name: str, outcome: Outcome, says: str) -> Symptom:
    if outcome.failure is None:
        return Symptom(name, True, says)
    return Symptom(name, False, f"{outcome.failure.boundary}: {outcome.failure.message}")
