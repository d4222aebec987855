"""What a plan will cost, estimated before anything is started.

Minutes are an order of magnitude.
"""

from pathlib import Path

from packaging.version import Version

from rlaudit.engines.environments.build import gigabytes
from rlaudit.engines.environments.environment import locate
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.environments.refusals import needs, refusals
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.models.model_files import ModelFiles, read_model_files
from rlaudit.laboratory.fit import misfit, plan_needs
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.run_setup import environments_wanted
from rlaudit.laboratory.study import Cost, FinishedT, PlanT, RecipeT, Study, releases
from rlaudit.vllm.catalogue import known_versions

# Of vLLM 0.18.1 if PyTorch's CPU index is not reachable and a torch with CUDA is installed instead; else 3.5.
GIGABYTES_FOR_CPU = 8.4
BUILD_MINUTES = 1.5
# Measured with 135 M weights on 2 cores; that of a GPU is a guess.
START_SECONDS = {"cpu": 18.0, "cuda": 60.0}
# Of a token and a billion weights, some 32 sequences at once. cpu: measured with 135 M weights in float32 on 2 cores of
# an AMD EPYC, 240 tokens/s with the prompts' share; cuda: 2 bytes a weight, read at a third of an H100's bandwidth once
# for all sequences.
PASS_SECONDS = {"cpu": 0.04, "cuda": 6e-5}
# Of a sampled token in a model of next to no weights: 256 sequences of 6 tokens in 0.8 s, most of it the engine.
TOKEN_SECONDS = {"cpu": 4e-4, "cuda": 3e-4}
# Of a billion weights in float32: 1.5 s for 135 M, from a disk that has them in memory.
MOVE_SECONDS = 11.0


def estimate(
    study: Study[RecipeT, PlanT, FinishedT],
    plan: PlanT,
    accelerator: Accelerator,
    prompts: PromptSet,
    folder: Path,
    given: GivenInterpreters = NONE_GIVEN,
    at_once: int = 1,
) -> str:
    """Return as text the engine starts, minutes and disk, the cells that exist, and why the run would be refused."""
    files = read_model_files(plan.recipe.model, plan.recipe.revision)
    specs = environments_wanted(plan, accelerator, files, given)
    missing = [spec for spec in specs if not spec.command and locate(spec) is None]
    cost = study.cost(plan, accelerator, prompts)
    done = len(list((folder / "cells").glob("*/result.json")))
    minutes = _seconds(cost, files, machine_of(accelerator).platform) / 60 / at_once + BUILD_MINUTES * len(missing)
    disk = f" (up to {sum(map(_gigabytes, missing)):.0f} GB)" if missing else ""
    catalogued = known_versions()
    machine = f"this {accelerator.kind} ({accelerator.name})"
    refused = [*refusals(specs, accelerator), misfit(files, plan_needs(plan, accelerator, files))]
    return "\n".join(
        [
            *cost.lines,
            f"engine starts: {cost.engine_starts}",
            *([f"cells at once: {at_once}"] if at_once > 1 else []),
            f"minutes: about {minutes:.0f} on {machine}{_reckoned_with(cost, files)}",
            f"environments to build: {', '.join(spec.name for spec in missing) or 'none'}{disk}",
            f"cells already in {folder}: {done}",
            *(
                f"vLLM {version} is not among the releases that rlaudit knows, {catalogued[0]} to {catalogued[-1]}; "
                "the package index decides when it is built"
                for version in releases(plan)
                if Version(version) not in catalogued
            ),
            *(f"refused: {refusal.message}\n  {refusal.hint}" for refusal in refused if refusal is not None),
        ]
    )


def _seconds(cost: Cost, files: ModelFiles, platform: str) -> float:
    """Return the seconds of all cells, one after the other."""
    weight_bytes = files.weight_bytes("float32")
    billions = cost.billions if weight_bytes is None else weight_bytes / 4e9
    overhead = cost.engine_starts * START_SECONDS[platform] + cost.sampled * TOKEN_SECONDS[platform]
    return overhead + billions * (cost.passes * PASS_SECONDS[platform] + cost.moves * MOVE_SECONDS)


def _reckoned_with(cost: Cost, files: ModelFiles) -> str:
    """Return a warning that the model's size is unknown and another one is assumed; empty if it is known."""
    if files.stored_bytes is not None:
        return ""
    why = f": {files.unknown}" if files.unknown else ""
    return f", if {files.name} had {cost.billions:g} billion weights: its size is not known here{why}"


def _gigabytes(spec: EnvironmentSpec) -> float:
    needed = needs(spec)
    return GIGABYTES_FOR_CPU if spec.build == "cpu" else gigabytes(spec.package, needed.cuda if needed else None)
