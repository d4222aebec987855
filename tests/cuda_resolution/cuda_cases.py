"""Whose engine arguments are resolved: every arm of every shipped recipe, what doctor starts, and what users write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rlaudit.engines.inside import doctor
from rlaudit.laboratory.recipe import recipe_folders
from rlaudit.laboratory.studies.arms.plan import Arm, make_plan
from rlaudit.laboratory.studies.arms.rollout import engine_settings, optional_engine_args
from rlaudit.laboratory.studies.canary.plan import CanaryPlan
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, TrainingArm
from rlaudit.laboratory.studies.updates.plan import EngineStart, plan_starts
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.laboratory.study import load_study
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import machine_named

DEVICES = ("h100", "a100", "b200")
# 0.26.0 is the first release with a native float32 head, and the one with the most differences between 0.18.1 and
# 0.32.0. Its Python imports over 0.32.0's packages; an environment of its own would take 5 GB more.
ALSO = "0.26.0"
PACKAGES_OF = {ALSO: "0.32.0"}


IN_PROCESS, SERVER, ASYNC = "LLM_CLASS", "OPENAI_API_SERVER", "ENGINE_CONTEXT"


@dataclass(frozen=True)
class Case:
    """One engine start on CUDA.

    context: vLLM's UsageContext, by name: who starts the engine. engine: what the recipe says it must be, V0 or V1.
    refused: whether the release does not start with this.
    """

    name: str
    version: str
    engine_args: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)
    optional_engine_args: Mapping[str, Any] = field(default_factory=dict)
    requires: tuple[Mapping[str, Any], ...] = ()
    fp32_head: bool = False
    context: str = IN_PROCESS
    engine: str | None = None
    refused: bool = False

    @property
    def offline(self) -> bool:
        """Whether an in-process `LLM` runs the engine."""
        return self.context == IN_PROCESS

    @property
    def variables_of_vllm(self) -> dict[str, str]:
        """Those that vLLM may read while it is imported."""
        return {name: value for name, value in self.variables.items() if name.startswith("VLLM_")}

    def as_job(self) -> dict[str, Any]:
        """The case as the script in the engine's interpreter reads it."""
        return {
            "engine_args": dict(self.engine_args),
            "optional_engine_args": dict(self.optional_engine_args),
            "requires": list(self.requires),
            "fp32_head": self.fp32_head,
            "context": self.context,
        }


def shipped_cases() -> tuple[Case, ...]:
    """Every arm and every engine start of every recipe that travels with rlaudit, as they run on CUDA."""
    paths = sorted(path for folder in recipe_folders() for path in folder.glob("*.yaml"))
    return tuple(case for path in paths for case in _of_recipe(str(path), path.stem))


def _of_recipe(path: str, name: str) -> Iterator[Case]:
    _, recipe, _ = load_study(path, "cuda")
    if isinstance(recipe, UpdateRecipe):
        yield from (_of_start(name, start) for start in plan_starts(recipe, "cuda"))
        return
    if isinstance(recipe, CanaryRecipe):
        plan = CanaryPlan(recipe, (), (), False, "cuda")
        yield from (_of_training(name, plan, arm) for arm in recipe.arms)
        return
    for block in make_plan(recipe).blocks:
        yield from (_of_arm(f"{name}: {block.name}", arm) for arm in block.arms)


def _of_arm(where: str, arm: Arm) -> Case:
    treatment = arm.treatment
    settings = engine_settings(treatment, "cuda")
    return Case(
        f"{where}: {arm.name}",
        treatment.version,
        settings.engine_args,
        settings.variables("cuda"),
        optional_engine_args(treatment, "cuda"),
        requires=tuple(
            {"factor": need.factor, "engine_args": list(need.engine_args), "modules": list(need.modules)}
            for need in treatment.requires
        ),
        fp32_head=treatment.fp32_head,
        engine=treatment.engine,
    )


def _of_training(where: str, plan: CanaryPlan, arm: TrainingArm) -> Case:
    return Case(
        f"{where}: {arm.name}",
        arm.version,
        plan.engine(arm).engine_args,
        plan.engine(arm).variables("cuda"),
        fp32_head=arm.fp32_head,
        engine=arm.engine,
    )


def _of_start(where: str, start: EngineStart) -> Case:
    # An engine without a pause is stepped in process.
    stepped = "pause_generation" not in Catalogue.at(start.version).signatures
    return Case(
        f"{where}: {start.name}",
        start.version,
        start.engine_args,
        start.wanted.variables("cuda"),
        context=IN_PROCESS if stepped else ASYNC,
        engine=start.engine,
    )


def written_cases(shipped: tuple[Case, ...]) -> tuple[Case, ...]:
    """What users write, and what doctor starts, under every release of the shipped recipes and one more."""
    versions = sorted({case.version for case in shipped} | {ALSO}, key=Version)
    return tuple(case for version in versions for case in (*_of_doctor(version), *_by_users(version)))


def _of_doctor(version: str) -> Iterator[Case]:
    arguments = {**doctor._ENGINE_ARGS, "dtype": doctor.dtype_on(machine_named("h100"))}
    yield Case("doctor", version, arguments)


WRITTEN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "float32": {"dtype": "float32"},
    "float16": {"dtype": "float16"},
    "one rank": {"tensor_parallel_size": 1},
    "eager": {"enforce_eager": True},
    "float32, eager": {"dtype": "float32", "enforce_eager": True},
    "larger blocks": {"block_size": 32},
    "the opposite of V1": {
        "enable_prefix_caching": False,
        "enable_chunked_prefill": False,
        "async_scheduling": False,
        "disable_cascade_attn": True,
        "max_num_seqs": 8,
        "seed": 7,
    },
    "the opposite of V0": {"enable_prefix_caching": True, "enable_chunked_prefill": True, "async_scheduling": True},
    "short": {"max_model_len": 256, "max_num_seqs": 4},
}
# Only where the release has both the argument and what it is given.
LATER: dict[str, dict[str, Any]] = {
    "full graphs": {"compilation_config": {"cudagraph_mode": "FULL"}},
    "full graphs, decode only": {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY"}},
    "piecewise graphs": {"compilation_config": {"cudagraph_mode": "PIECEWISE"}},
    "no graphs": {"compilation_config": {"cudagraph_mode": "NONE"}},
    "not compiled": {"compilation_config": {"mode": 0}},
    "not compiled, full graphs": {"compilation_config": {"mode": 0, "cudagraph_mode": "FULL"}},
    "optimization level 0": {"optimization_level": 0},
    "optimization level 1": {"optimization_level": 1},
    "TRITON_ATTN": {"attention_backend": "TRITON_ATTN"},
    "FLEX_ATTENTION": {"attention_backend": "FLEX_ATTENTION"},
    "FLASHINFER": {"attention_backend": "FLASHINFER"},
    "FLASH_ATTN, float32": {"attention_backend": "FLASH_ATTN", "dtype": "float32"},
    "fp8 cache": {"kv_cache_dtype": "fp8"},
    "throughput": {"performance_mode": "throughput"},
}
# Variables, and the releases that read them.
VARIABLES: dict[str, tuple[dict[str, str], SpecifierSet]] = {
    "V0": ({"VLLM_USE_V1": "0"}, SpecifierSet("<0.11")),
    "V1": ({"VLLM_USE_V1": "1"}, SpecifierSet("<0.11")),
    "XFORMERS": ({"VLLM_ATTENTION_BACKEND": "XFORMERS"}, SpecifierSet("<0.11")),
    "batch invariant": ({"VLLM_BATCH_INVARIANT": "1"}, SpecifierSet(">=0.11.2")),
    "first runner": ({"VLLM_USE_V2_MODEL_RUNNER": "0"}, SpecifierSet(">=0.22")),
    "second runner": ({"VLLM_USE_V2_MODEL_RUNNER": "1"}, SpecifierSet(">=0.12")),
}
# V1 of 0.8.5 is half precision only, FlashAttention in every release; until 0.19 batch invariance wants a backend to be
# named.
REFUSED = {
    "V1, float32": SpecifierSet("<0.9.2"),
    "FLASH_ATTN, float32": SpecifierSet(">=0.11.1"),
    "batch invariant": SpecifierSet("<0.20"),
    "batch invariant, float32": SpecifierSet("<0.20"),
}


def _by_users(version: str) -> Iterator[Case]:
    for name, arguments, variables in _written(version):
        refused = version in REFUSED.get(name, SpecifierSet("==0"))
        yield Case(name, version, arguments, variables, refused=refused)
    yield Case("nothing, server", version, {}, context=SERVER)


def _written(version: str) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    catalogue = Catalogue.at(version)
    for name, written in WRITTEN.items():
        yield name, {key: value for key, value in written.items() if key in catalogue.engine}, {}
    for name, written in LATER.items():
        if "attention_config" in catalogue.engine and set(written) <= set(catalogue.engine):
            yield name, written, {}
    for name, (variables, releases) in VARIABLES.items():
        if version in releases:
            yield name, {}, variables
            yield f"{name}, float32", {"dtype": "float32"}, variables
