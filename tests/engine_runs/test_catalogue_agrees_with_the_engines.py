"""The catalogue says of a release what the release says of itself: declared defaults, flags, and resolved values."""

import json
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.errors import NotFinished
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, Declared
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.resolve import resolve

pytestmark = [pytest.mark.engine, pytest.mark.beside]

VERSIONS = ("0.8.5", "0.18.1", "0.32.0")
ALWAYS_BUILT = {"0.8.5", "0.18.1"}
DUMP = Path(__file__).with_name("dump_engine_arguments.py")
MODEL = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
# What the config says, and whether an in-process engine runs it. A key that a release does not have is left out.
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing, in process": ({}, True),
    "nothing, server": ({}, False),
    "the opposite of V1's defaults": (
        {
            "enable_prefix_caching": False,
            "enable_chunked_prefill": False,
            "async_scheduling": True,
            "seed": 7,
            "disable_cascade_attn": False,
            "max_num_seqs": 8,
        },
        False,
    ),
    "V0 look-alikes": ({"enable_prefix_caching": True, "enforce_eager": True, "dtype": "float32"}, True),
    "short and narrow": ({"max_model_len": 256, "max_num_seqs": 4}, True),
}
# Resolved on the way to the model, not in the config objects: nothing to compare with before an engine runs.
NOT_IN_CONFIG = {"attention_backend", "flashinfer_sampler", "logprobs_semantics", "fuse_allreduce_rms"}


def built(version: str) -> Environment:
    """The environment of a release; skips with the reason where it cannot be had."""
    try:
        return ensure(EnvironmentSpec("vllm", version, "cpu"), report=print)
    except NotFinished as error:
        # An index may lack the one torch that a release wants; the releases of the recipe are built in any case.
        if version in ALWAYS_BUILT:
            raise
        pytest.skip(f"vLLM {version} cannot be had here: {error}")


@lru_cache(maxsize=3)
def dumped(version: str, folder: Path) -> dict[str, Any]:
    """What the release's own interpreter says, from one process."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    (model / "generation_config.json").write_text(json.dumps({"temperature": 0.6, "top_k": 20}), encoding="utf-8")
    job = folder / "job.json"
    job.write_text(json.dumps({"model": str(model), "cases": CASES}), encoding="utf-8")
    environment = built(version)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON"))}
    out = folder / f"{version}.json"
    command = [*environment.command, "-s", str(DUMP), str(job), str(out)]
    done = subprocess.run(
        command, env={**clean, **environment.variables}, capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dump")


def as_imported(declared: Declared) -> Any:
    """A catalogued default in the words of the dump."""
    if declared.config:
        return {"object": declared.config}
    if isinstance(declared.default, Unknown):
        return "unknown"
    return declared.default


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_the_engine_arguments_has_the_default_that_the_release_gives_it(
    version: str, folder: Path
) -> None:
    engine = Catalogue.at(version).engine
    real = dumped(version, folder)["fields"]
    assert set(engine) == {name for name in real if not name.startswith("_")}
    told = {name: as_imported(declared) for name, declared in engine.items()}
    differing = {
        name: (told[name], real[name]) for name in told if told[name] != real[name] and told[name] != "unknown"
    }
    assert differing == {}
    unknown = sorted(name for name in told if told[name] == "unknown")
    assert len(unknown) <= 1, unknown


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flag_of_the_server_sets_what_the_release_says_it_sets(version: str, folder: Path) -> None:
    real = dumped(version, folder)["flags"]
    told = {flag: name for flag, name in Catalogue.at(version).cli.items() if flag != "O" or version == "0.8.5"}
    assert {flag: real.get(flag, "absent") for flag in told if told[flag] != real.get(flag)} == {}
    assert sorted(flag for flag in real if flag not in told and flag not in ("help", "h", "no-help", "?")) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_sampling_parameters_have_the_defaults_that_the_release_gives_them(version: str, folder: Path) -> None:
    told = {name: as_imported(declared) for name, declared in Catalogue.at(version).sampling.items()}
    real = dumped(version, folder)["sampling"]
    assert {name: (value, real.get(name, "absent")) for name, value in told.items() if real.get(name) != value} == {}
    assert set(real) == set(told)


@pytest.mark.parametrize("version", VERSIONS)
def test_environment_variables_have_the_defaults_that_the_release_gives_them(version: str, folder: Path) -> None:
    told = {name: as_imported(declared) for name, declared in Catalogue.at(version).variables.items()}
    found = dumped(version, folder)
    assert set(told) == set(found["variables"])
    set_here = set(found["set_here"])
    differing = {
        name: (value, found["variables"][name])
        for name, value in told.items()
        if name.startswith("VLLM_") and name not in set_here and value not in ("unknown", found["variables"][name])
    }
    assert differing == {}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_values_resolve_to_what_the_release_makes_of_them_on_a_cpu(version: str, case: str, folder: Path) -> None:
    real = dumped(version, folder)["resolved"][case]
    catalogue = Catalogue.at(version)
    written, offline = CASES[case]
    engine = {
        name: Setting(name, value, value, Origin.FILE) for name, value in written.items() if name in catalogue.engine
    }
    model = Setting("model", str(folder / "model"), None, Origin.FILE)
    config = RolloutConfig("vllm", "run.yaml", engine=engine, model=model, offline=offline)
    resolution = resolve(config, catalogue, machine_named("cpu"))
    told = {name: resolution.value(name) for name in real}
    known = {name: value for name, value in told.items() if not isinstance(value, Unknown)}
    assert {name: (value, real[name]) for name, value in known.items() if value != real[name]} == {}
    assert len(known) >= len(real) - 1, sorted(set(real) - set(known))
    assert not NOT_IN_CONFIG & set(real)
