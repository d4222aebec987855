"""What rlaudit says a CUDA engine will run is what the release's own Python makes of the same arguments on that GPU."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from cuda_cases import ASYNC, DEVICES, PACKAGES_OF, Case, shipped_cases, written_cases
from cuda_python import cuda_python, ran

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.builds import published_build
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.resolve import resolve

pytestmark = [pytest.mark.engine, pytest.mark.beside]

SCRIPT = Path(__file__).with_name("resolve_as_cuda.py")
# SmolLM2-135M with two layers and a small vocabulary: what decisions read of a model is its shape.
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 2,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 512,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "torch_dtype": "bfloat16",
}
# Not told by design. With batch invariance 0.31.0 and later compile by the shapes of the model's layers, of which
# rlaudit keeps no table.
UNKNOWN = {("0.32.0", "batch invariant"): {"compilation_mode"}}
# rlaudit tells the defaults of `LLM(...)` and of a server; an AsyncLLM that a program starts by itself has others.
NOT_OF_ASYNC = {"max_num_seqs", "max_num_batched_tokens"}
SHIPPED = shipped_cases()
WRITTEN = written_cases(SHIPPED)


@dataclass(frozen=True)
class Run:
    """values: (device, name of a case) -> what the release resolves it to. failure: what was said instead."""

    values: Mapping[tuple[str, str], dict[str, Any]]
    failure: str = ""


def device(name: str, version: str) -> dict[str, Any]:
    """A machine of rlaudit's as the stub answers for it."""
    machine = machine_named(name)
    build = published_build(version, "cuda")
    assert build is not None
    return {
        "capability": list(divmod(machine.capability, 10)),
        "name": f"NVIDIA {machine.name}",
        "memory_bytes": int(machine.memory_gib * 2**30),
        "cuda": build.cuda,
    }


@lru_cache(maxsize=8)
def run(version: str, folder: Path) -> Run:
    """All cases of a release under one interpreter."""
    # Arms that differ on the trainer's side only share a job.
    groups: dict[tuple[str, str], dict[str, list[Case]]] = {}
    for case in (*SHIPPED, *WRITTEN):
        if case.version == version:
            for name in DEVICES:
                jobs = groups.setdefault((name, text_of(case.variables_of_vllm)), {})
                jobs.setdefault(text_of(case.as_job()), []).append(case)
    tree = cuda_python(version)
    place = folder / version
    place.mkdir()
    job = {
        "tree": str(tree),
        "generate": str(ENGINE.generate),
        "model": str(model_in(folder)),
        "groups": [
            {
                "device": device(name, version),
                "variables": json.loads(variables),
                "cases": [json.loads(text) for text in jobs],
            }
            for (name, variables), jobs in groups.items()
        ],
    }
    environment = ensure(EnvironmentSpec("vllm", PACKAGES_OF.get(version, version), "cpu"), report=print)
    done = ran(environment.command, SCRIPT, job, tree, place)
    (place / "log.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode != 0:
        return Run({}, done.stderr[-6000:])
    found = json.loads((place / "out.json").read_text(encoding="utf-8"))
    return Run(
        {
            (name, case.name): values
            for ((name, _), jobs), answers in zip(groups.items(), found, strict=True)
            for cases, values in zip(jobs.values(), answers, strict=True)
            for case in cases
        }
    )


def resolved(case: Case, name: str, folder: Path) -> dict[str, Any]:
    """What the release itself resolves a case to on a device."""
    done = run(case.version, folder)
    assert not done.failure, done.failure
    return done.values[name, case.name]


def text_of(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)


def model_in(folder: Path) -> Path:
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    return model


def predicted(case: Case, name: str, folder: Path) -> dict[str, Any]:
    """What `inspect --device` says of the same arguments and variables, by value."""
    catalogue = Catalogue.at(case.version)
    arguments = {
        **{key: value for key, value in case.optional_engine_args.items() if key in catalogue.engine},
        **case.engine_args,
    }
    config = RolloutConfig(
        "vllm",
        "run.yaml",
        engine={key: Setting(key, value, value, Origin.FILE) for key, value in arguments.items()},
        environment={key: Setting(key, value, value, Origin.FILE) for key, value in case.variables.items()},
        model=Setting("model", str(model_in(folder)), None, Origin.FILE),
        offline=case.offline,
    )
    resolution = resolve(config, catalogue, machine_named(name))
    compared = set(resolved(case, name, folder)) - (NOT_OF_ASYNC if case.context == ASYNC else set())
    return {value: resolution.value(value) for value in sorted(compared)}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


def named(cases: Iterable[Case]) -> list[Any]:
    return [pytest.param(case, id=f"{case.version}-{case.name}") for case in cases]


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("case", named(SHIPPED))
def test_every_arm_of_a_shipped_recipe_runs_on_cuda_what_inspect_says(case: Case, name: str, folder: Path) -> None:
    real = resolved(case, name, folder)
    assert "refused" not in real, real
    told = predicted(case, name, folder)
    assert {value: (told[value], real[value]) for value in told if told[value] != real[value]} == {}
    assert real["engine"] == (case.engine or "V1")


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("case", named(WRITTEN))
def test_what_users_write_resolves_on_cuda_to_what_inspect_says(case: Case, name: str, folder: Path) -> None:
    real = resolved(case, name, folder)
    assert ("refused" in real) == case.refused, real
    if case.refused:
        return
    told = predicted(case, name, folder)
    unknown = {value for value, said in told.items() if isinstance(said, Unknown)}
    differing = {value for value in told if value not in unknown and told[value] != real[value]}
    assert {value: (told[value], real[value]) for value in differing} == {}
    assert unknown == UNKNOWN.get((case.version, case.name), set())


def test_the_reference_of_a_migration_from_v0_is_v0_on_every_device(folder: Path) -> None:
    references = [case for case in SHIPPED if case.version == "0.8.5"]
    assert references
    assert {resolved(case, name, folder)["engine"] for case in references for name in DEVICES} == {"V0"}
