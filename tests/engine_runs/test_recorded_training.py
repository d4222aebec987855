"""TRL's GRPO over vLLM 0.8.5 and over 0.10.2, recorded: the program of examples/recorded as it is, on a tiny model.

TRL is not installed with either engine: its packages lie in a folder, which PYTHONPATH puts before the engine's own.
"""

import ast
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from recorder_folder import sequences_by_version
from tiny_checkpoint import write_tiny_llama
from trl_sampling_metrics import metrics_by_step

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec, trainer_spec
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.engines.models.model import DEFAULT_MODEL, ensure_model
from rlaudit.files.parse_json import parse_json
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).parents[2] / "examples" / "recorded" / "trl-0.8.5-to-0.10.2" / "train.py"
STEPS = 8  # max_steps of the program
TRL = "0.23.1"
# What TRL 0.23.1 asks for and vLLM 0.8.5 or 0.10.2 pins lower; all else, torch first, is the engine's.
PACKAGES = (
    f"trl=={TRL}",
    "transformers==4.56.2",
    "tokenizers==0.22.1",
    "huggingface-hub==0.36.2",
    "accelerate==1.10.1",
    "datasets==4.4.1",
    "pyarrow==21.0.0",
)
RELEASES: Mapping[str, str] = {"v0": "0.8.5", "v1": "0.10.2"}
# Relative alone: over 0.8.5 the differences are 3e-6 themselves. Found on 2026-11-24: 2e-7 at most.
FLOAT32_ROUNDING = {"rel": 1e-5, "abs": 1e-10}


@dataclass(frozen=True)
class Trained:
    """How a recorded training ended, what it printed, and what rlaudit said beside it."""

    recording: Path
    code: int
    printed: str
    said: str

    @property
    def logged(self) -> list[dict[str, float]]:
        """What TRL logged of each step: the dictionaries that its trainer prints."""
        lines = [ast.literal_eval(line) for line in self.printed.splitlines() if line.startswith("{'loss'")]
        return [{name: value for name, value in line.items() if name.startswith("sampling/")} for line in lines]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Trained]:
    """The program under `rlaudit record` with both releases, by the generation of the engine."""
    folder = tmp_path_factory.mktemp("migration")
    tokenizer = ensure_model(DEFAULT_MODEL, trainer_spec("cpu"), report=print)
    write_tiny_llama(Path(tokenizer.path), folder / "tiny-llama")
    engines = {name: ensure(EnvironmentSpec("vllm", RELEASES[name], "cpu"), report=print) for name in RELEASES}
    return {name: _record(folder, name, engine) for name, engine in engines.items()}


def _record(folder: Path, into: str, engine: Environment) -> Trained:
    # Each of its own: the engines need not have the same Python.
    packages, interpreter = folder / f"packages-{into}", Path(engine.command[0])
    Uv(find_uv(), read_package_sources()).pip("install", interpreter, "--no-deps", "--target", packages, *PACKAGES)
    kept = {name: value for name, value in os.environ.items() if name not in ("VLLM_PLUGINS", "RLAUDIT_RECORD")}
    variables = {
        **kept,
        **engine.variables,
        **ENGINE.quiet,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(packages), kept.get("PYTHONPATH")))),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "all",
        "VLLM_CPU_CI_ENV": "1",  # no inductor: it would compile for longer than the training takes
        "HF_HUB_OFFLINE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),  # TRL 0.23.1 would take 12345, whoever has it
    }
    words = [sys.executable, "-m", "rlaudit", "record", "--into", into, "--", *engine.command, str(PROGRAM)]
    done = subprocess.run(
        [*words, "tiny-llama"], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    return Trained(folder / into, done.returncode, done.stdout, done.stderr)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _report(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    code = run([*map(str, words), "--output", "json"])
    report = parse_json(capsys.readouterr().out)
    assert report["exit_code"] == code
    return report


@pytest.mark.parametrize("name", RELEASES)
def test_a_training_ends_as_it_does_alone_and_every_completion_has_both_logprobs(
    trained: Mapping[str, Trained], name: str
) -> None:
    training = trained[name]
    assert training.code == 0, training.printed[-2000:] + training.said[-4000:]
    assert "1 engine, 128 requests, 128 sequences" in training.said
    (front,) = open_recording(training.recording).processes
    assert front.totals is not None and front.totals.ended and len(front.trainer) == 2 * STEPS


@pytest.mark.parametrize("name", RELEASES)
def test_trls_sampling_metrics_of_every_step_are_in_the_recording(trained: Mapping[str, Trained], name: str) -> None:
    logged, recorded = trained[name].logged, metrics_by_step(trained[name].recording, TRL)
    assert len(logged) == len(recorded) == STEPS
    for theirs, ours in zip(logged, recorded, strict=True):
        assert len(ours) == 5
        assert ours == pytest.approx(theirs, **FLOAT32_ROUNDING)


@pytest.mark.parametrize("name", RELEASES)
def test_the_weights_have_a_version_for_each_optimizer_step(trained: Mapping[str, Trained], name: str) -> None:
    (served,) = open_recording(trained[name].recording).served
    # TRL loads the weights that are there already before it samples for the first time, and none after the last step.
    assert len(served.updates) == STEPS and served.first_sampled == 1
    assert sequences_by_version(served) == [0, *[16] * STEPS]


def test_compare_finds_raw_logprobs_of_the_new_engine_and_nothing_of_the_old_one(
    trained: Mapping[str, Trained], capsys: pytest.CaptureFixture[str]
) -> None:
    layers = {name: _report(capsys, "compare", one.recording)["layers"] for name, one in trained.items()}
    assert layers["v0"][0]["verdict"] != "mismatch" and layers["v0"][0]["causes"] == []
    assert layers["v0"][1]["verdict"] == "match"
    assert (layers["v1"][0]["verdict"], layers["v1"][0]["causes"]) == ("mismatch", ["raw-logprobs"])


def test_diagnose_names_raw_logprobs_in_the_semantic_layer(
    trained: Mapping[str, Trained], capsys: pytest.CaptureFixture[str]
) -> None:
    report = _report(capsys, "diagnose", trained["v0"].recording, trained["v1"].recording)
    assert report["exit_code"] == 1
    semantic = report["layers"][0]
    assert (semantic["layer"], semantic["verdict"], semantic["causes"]) == ("semantic", "mismatch", ["raw-logprobs"])
    assert "logprobs_mode=processed_logprobs" in semantic["next"]
