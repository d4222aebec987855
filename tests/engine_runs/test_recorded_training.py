"""TRL's GRPO over vLLM 0.8.5 and over 0.10.2, recorded: the program of examples/recorded as it is, on a tiny model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from recorder_folder import sequences_by_version
from trl_sampling_metrics import metrics_by_step
from trl_training import FLOAT32_ROUNDING, Trained, write_model
from trl_training import trained as train

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.files.parse_json import parse_json
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).parents[2] / "examples" / "recorded" / "trl-0.8.5-to-0.10.2" / "train.py"
STEPS = 8  # max_steps of the program
TRL = "0.23.1"
RELEASES: Mapping[str, str] = {"v0": "0.8.5", "v1": "0.10.2"}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Trained]:
    """The program under `rlaudit record` with both releases, by the generation of the engine."""
    folder = tmp_path_factory.mktemp("migration")
    write_model(folder)
    engines = {name: ensure(EnvironmentSpec("vllm", RELEASES[name], "cpu"), report=print) for name in RELEASES}
    return {name: train(folder, name, engine, TRL, PROGRAM, "tiny-llama") for name, engine in engines.items()}


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
