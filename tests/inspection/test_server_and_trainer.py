"""A server and its trainer in one script are one config: what the one leaves open is told by the other."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.source import Source
from rlaudit.inspection.read_configs import FileConfigs, known_dialects, read_configs, recognise
from rlaudit.settings.rollout_config import RolloutConfig

VERSION = Version("0.18.1")
SERVE = "trl vllm-serve --model org/model --tensor_parallel_size 2 &\n"
PLAIN = "vllm serve org/model --max-model-len 4096 &\n"
TRAIN = (
    "accelerate launch train_grpo.py --model_name_or_path org/model --use_vllm true --vllm_mode server --top_p 0.9\n"
)
SWIFT = "swift rollout --model org/model --vllm_max_model_len 4096 &\n"
RLHF = "swift rlhf --rlhf_type grpo --model org/model --use_vllm true --vllm_mode server --top_p 0.9\n"


def read(text: str) -> FileConfigs:
    source = Source("run.sh", text)
    recognised, bugs = recognise(source, known_dialects())
    assert not bugs
    return read_configs(source, recognised, (VERSION, VERSION))


def configs(text: str) -> list[RolloutConfig]:
    return [pair.after for pair in read(text).pairs]


@pytest.mark.parametrize(
    ("text", "argument", "value"),
    [
        (SERVE + TRAIN, "tensor_parallel_size", "2"),
        (TRAIN.replace("\n", " &\n") + SERVE, "tensor_parallel_size", "2"),
        (PLAIN + TRAIN, "max_model_len", 4096),
        (PLAIN + PLAIN.replace("org/model", "org/judge") + TRAIN, "max_model_len", 4096),
        (SWIFT + RLHF, "max_model_len", 4096),
    ],
    ids=["trl", "trainer first", "vllm serve", "a judge beside it", "ms-swift"],
)
def test_a_server_and_its_trainer_are_one_config(text: str, argument: str, value: object) -> None:
    (one,) = configs(text)
    assert str(one.engine[argument].value) == str(value)
    assert str(one.sampling["top_p"].value) == "0.9"
    assert one.facts.replays_filters is False
    assert not isinstance(one.engine, Elsewhere) and not isinstance(one.sampling, Elsewhere)
    assert not any("another command" in sentence for sentence in one.not_seen)


def test_a_server_of_another_model_stays_by_itself() -> None:
    (trainer,) = configs(PLAIN.replace("org/model", "org/judge") + TRAIN)
    assert isinstance(trainer.engine, Elsewhere)
    server, trainer = configs(SERVE.replace("org/model", "org/judge") + TRAIN)
    assert isinstance(server.sampling, Elsewhere) and isinstance(trainer.engine, Elsewhere)


def test_two_servers_or_two_trainers_are_not_joined() -> None:
    assert len(configs(SERVE + SERVE + TRAIN)) == 3
    assert len(configs(SERVE + TRAIN + TRAIN)) == 3


def test_a_server_that_was_joined_is_not_said_to_be_unread() -> None:
    assert not any("would use were not read" in sentence for sentence in read(PLAIN + TRAIN).not_seen)
    judge = PLAIN.replace("org/model", "org/judge")
    assert any("would use were not read" in sentence for sentence in read(PLAIN + judge + TRAIN).not_seen)


def test_what_the_server_is_given_can_be_fixed_where_it_stands() -> None:
    (one,) = configs(PLAIN + TRAIN)
    edits = one.write("logprobs_mode", "processed_logprobs")
    assert edits is not None and all(edit.end <= len(PLAIN) for edit in edits)


@pytest.mark.parametrize("named", ["train.py", "/workspace/train.py"])
def test_the_trainer_may_be_a_program_beside_the_script(tmp_path: Path, named: str) -> None:
    program = "from trl import GRPOConfig\nargs = GRPOConfig(use_vllm=True, vllm_mode='server', top_p=0.9)\n"
    (tmp_path / "train.py").write_text(program)
    script = tmp_path / "run.sh"
    for started in (f"python {named} &\n", f'bash -c "accelerate launch {named} --lr $LR" &\n'):
        script.write_text(started + SERVE)
        source = Source(str(script), script.read_text())
        read = read_configs(source, recognise(source, known_dialects())[0], (VERSION, VERSION))
        (one,) = (pair.after for pair in read.pairs)
        assert (one.path, one.parts) == (str(script), (str(tmp_path / "train.py"),))
        assert one.sampling["top_p"].value == 0.9
        place = one.sampling["top_p"].place
        assert place is not None and place.path == str(tmp_path / "train.py")


def test_a_program_beside_that_asks_no_server_is_a_file_of_its_own(tmp_path: Path) -> None:
    program = "from trl import GRPOConfig\nargs = GRPOConfig(use_vllm=True, vllm_mode='colocate')\n"
    (tmp_path / "train.py").write_text(program)
    source = Source(str(tmp_path / "run.sh"), "python train.py &\n" + SERVE)
    read = read_configs(source, recognise(source, known_dialects())[0], (VERSION, VERSION))
    (server,) = (pair.after for pair in read.pairs)
    assert isinstance(server.sampling, Elsewhere)


@pytest.mark.parametrize(("release", "asks"), [("0.8.5", True), ("0.18.1", False)])
def test_a_trainer_that_leaves_its_mode_to_the_framework_is_compared_in_both_modes(release: str, asks: bool) -> None:
    source = Source("run.sh", SERVE + TRAIN.replace("--vllm_mode server ", ""))
    recognised, _ = recognise(source, known_dialects())
    pairs = read_configs(source, recognised, (Version(release), VERSION)).pairs
    (pair,) = pairs
    assert (pair.before.options["vllm_mode"].value == "server") is asks
    assert pair.after.options["vllm_mode"].value == "colocate"
    assert any("the server in line 1" in sentence for sentence in pair.after.not_seen)
