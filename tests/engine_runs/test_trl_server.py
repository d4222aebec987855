"""TRL 0.25.1 with its own server over vLLM 0.10.2: three processes, recorded by one command, against TRL's own metrics.

TRL 0.25.1 asks for processed logprobs where trainer and engine share a process. Its server does not: at a temperature
of 0.7 the published mistake is still there, and the metrics that TRL itself logs show how large it is.
"""

from pathlib import Path

import pytest
from recorder_folder import sequences_by_version
from trl_sampling_metrics import metrics_by_step
from trl_server import PROMPTS, SAMPLES, STEPS
from trl_training import FLOAT32_ROUNDING, Trained, free_port, write_model
from trl_training import trained as train

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.files.parse_json import parse_json
from rlaudit.recording.recording import open_recording

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("trl_server.py")
TRL = "0.25.1"
TENSORS = 21  # of the tiny model
PROTOCOL = (
    f"collective_rpc(method=update_named_param) x{TENSORS}",
    f"load_weights of {TENSORS} tensors",
    "reset_prefix_cache()",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder, engine = tmp_path_factory.mktemp("server"), ensure(EnvironmentSpec("vllm", "0.10.2", "cpu"), report=print)
    write_model(folder)
    words = (PROGRAM, "tiny-llama", free_port(), "0.7")
    training = train(folder, "out", engine, TRL, *words, beside=(_plugin(folder / "plugin"), PROGRAM.parent))
    assert training.code == 0, training.printed[-2000:] + training.said[-4000:]
    return training


def _plugin(folder: Path) -> Path:
    """Write what makes the program a plug-in of vLLM."""
    about = folder / "trl_server-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: trl-server\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[vllm.general_plugins]\ntrl_server = trl_server:register\n")
    return folder


def test_server_engine_core_and_trainer_are_recorded_whole(trained: Trained) -> None:
    sequences = STEPS * PROMPTS * SAMPLES
    assert f"3 processes, 1 engine, {sequences} requests, {sequences} sequences" in trained.said
    kinds = [
        (bool(one.engines), bool(one.workers), len(one.trainer), one.failed, one.dropped)
        for one in open_recording(trained.recording).processes
    ]
    assert sorted(kinds) == [(False, False, 2 * STEPS, (), ()), (False, True, 0, (), ()), (True, False, 0, (), ())]


def test_each_optimizer_step_is_an_update_tensor_by_tensor_and_the_cache_is_emptied(trained: Trained) -> None:
    (served,) = open_recording(trained.recording).served
    assert [update.order for update in served.updates] == [PROTOCOL] * STEPS
    assert [(update.reset, update.in_flight, update.error) for update in served.updates] == [(True, 0, None)] * STEPS
    # TRL loads the weights that are there already before it samples for the first time, and none after the last step.
    assert sequences_by_version(served) == [0, *[PROMPTS * SAMPLES] * STEPS]


def test_trls_sampling_metrics_of_every_step_are_in_the_recording(trained: Trained) -> None:
    recorded = metrics_by_step(trained.recording, TRL)
    assert len(trained.logged) == len(recorded) == STEPS
    for theirs, ours in zip(trained.logged, recorded, strict=True):
        assert len(ours) == 5
        assert ours == pytest.approx(theirs, **FLOAT32_ROUNDING)


def test_compare_finds_raw_logprobs_of_the_server(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["compare", str(trained.recording), "--output", "json"])
    semantic = parse_json(capsys.readouterr().out)["layers"][0]
    assert (code, semantic["verdict"], semantic["causes"]) == (1, "mismatch", ["raw-logprobs"])
