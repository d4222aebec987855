"""The release of a framework, where the project pins it and its source is not there."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown

MS_SWIFT, TRL, VERL = declared()["ms_swift"], declared()["trl"], declared()["verl"]
FLAT = "num_generations: 4\nuse_vllm: true\n"
SWIFT = "swift rlhf --rlhf_type grpo --use_vllm true --vllm_mode colocate --model org/policy\n"
OVERRIDES = "python -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8\n"


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def read(dialect: object, name: str, text: str, vllm: str) -> RolloutConfig:
    (config,) = dialect.read(Source(name, text), Version(vllm))  # type: ignore[attr-defined]
    return config


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("requirements.txt", "torch\ntrl==0.17.0\n"),
        ("setup.py", 'extras = ["trl[vllm]==0.17.0", "peft>=0.14"]\n'),
        ("pyproject.toml", 'dependencies = ["trl @ git+https://github.com/huggingface/trl.git@v0.17.0"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntrl = "0.17.0"\n'),
        ("uv.lock", '[[package]]\nname = "trl"\nversion = "0.17.0"\n'),
        ("environment.yml", "dependencies:\n  - pip:\n      - trl==0.17.0\n"),
        ("Dockerfile", "RUN pip install trl==0.17.0\n"),
    ],
)
def test_a_pin_tells_the_release_in_every_kind_of_file(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    config = read(TRL, "run.yaml", FLAT, "0.8.5")
    assert config.sampling["temperature"].value == 0.9
    assert any("server" in said for said in config.not_seen)


@pytest.mark.parametrize(
    "content", ["trl>=0.17\n", "trl==0.17.0\ntrl==0.19.0\n", "trl-extras==0.17.0\n", "# trl==0.17.0\n"]
)
def test_a_range_two_releases_another_package_and_a_comment_tell_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "requirements.txt").write_text(content)
    modes = [said for said in read(TRL, "run.yaml", FLAT, "0.8.5").not_seen if "whether TRL is 0.16.0 or later" in said]
    assert modes != []


def test_a_pin_that_lacks_a_written_key_is_not_what_runs(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    config = read(TRL, "run.yaml", FLAT + "vllm_mode: colocate\n", "0.8.5")
    assert config.sampling["temperature"].value == 1.0
    assert config.refused_pin is None


def test_a_pin_that_does_not_run_with_the_vllm_is_refused_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\ntrl==0.17.0\n")
    pin = read(TRL, "run.yaml", FLAT, "0.18.1").refused_pin
    assert pin is not None and pin.where == "requirements.txt:2"
    assert "0.17.0" in pin.because and "0.12" in pin.because
    assert read(TRL, "run.yaml", FLAT, "0.8.5").refused_pin is None


def test_the_servers_release_is_the_pinned_one_too(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.19.1\n")
    script = "trl vllm-serve --model org/policy\n"
    assert "logprobs_mode" not in read(TRL, "serve.sh", script, "0.10.2").engine
    pin = read(TRL, "serve.sh", script, "0.18.1").refused_pin
    assert pin is not None and pin.where == "requirements.txt:1"


def test_a_script_that_installs_the_framework_says_its_release_itself(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("ms-swift==4.0.4\n")
    assert read(MS_SWIFT, "run.sh", SWIFT, "0.8.5").sampling["top_k"].value == -1
    config = read(MS_SWIFT, "run.sh", "pip install ms_swift==3.8.0\n" + SWIFT, "0.8.5")
    assert config.sampling["top_k"].value == 50


@pytest.mark.parametrize(("pin", "processed"), [("verl==0.6.1", False), ("verl==0.7.0", True), ("verl==0.4.1", None)])
def test_a_pin_of_verl_settles_what_its_releases_do_otherwise(tmp_path: Path, pin: str, processed: bool | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"{pin}\n")
    mode = read(VERL, "run.sh", OVERRIDES, "0.10.2").engine.get("logprobs_mode")
    unknown = mode is not None and isinstance(mode.value, Unknown)
    assert unknown if processed is None else (mode is not None and not unknown) == processed
