"""A script that starts a Python program with an engine of vLLM."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.vllm_script import SCRIPT

TRAIN = """
import argparse
from vllm import LLM, SamplingParams
parser = argparse.ArgumentParser()
parser.add_argument("--temperature", type=float, default=1.0)
parser.add_argument("--gpu-memory", type=float, required=True)
parser.add_argument("--top-p", type=float, default=1.0)
parser.add_argument("--eager", action="store_true")
args = parser.parse_args()
llm = LLM(model="m", gpu_memory_utilization=args.gpu_memory, enforce_eager=args.eager)
out = llm.generate(prompts, SamplingParams(temperature=args.temperature, top_p=args.top_p))
"""
LAUNCH = "export VLLM_USE_V1=1\npython own/train.py --temperature 0.7 --gpu-memory=0.8 --eager\n"


def script(root: Path, text: str, train: str = TRAIN) -> Source:
    for name, content in {".git/HEAD": "", "own/__init__.py": "", "own/train.py": train, "run.sh": text}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Source(str(root / "run.sh"), text)


def read(source: Source) -> RolloutConfig:
    assert SCRIPT.recognise(source)
    (config,) = SCRIPT.read(source, Version("0.18.1"))
    return config


@pytest.mark.parametrize("start", ["python own/train.py", "torchrun --nproc 2 own/train.py", "python -m own.train"])
def test_the_program_is_read_with_what_its_command_says(tmp_path: Path, start: str) -> None:
    config = read(script(tmp_path, LAUNCH.replace("python own/train.py", start)))
    assert {name: one.value for name, one in config.engine.items()} == {
        "gpu_memory_utilization": 0.8, "enforce_eager": True,
    }  # fmt: skip
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (0.7, 1.0)
    assert config.environment["VLLM_USE_V1"].value == "1"
    assert config.path.endswith("run.sh") and config.parts[-1].endswith("train.py")


def test_what_the_shell_does_not_tell_is_unknown_and_no_default(tmp_path: Path) -> None:
    config = read(script(tmp_path, "python own/train.py --temperature $1 --gpu-memory 0.8\n"))
    assert isinstance(config.sampling["temperature"].value, Unknown)
    assert config.engine["enforce_eager"].value is False


@pytest.mark.parametrize("text", [
    "python own/eval.py --temperature 0.7\n",
    "python other.py\n",
    "echo python\n",
    "python own/train.py.bak\n",
])  # fmt: skip
def test_other_scripts_are_none(tmp_path: Path, text: str) -> None:
    source = script(tmp_path, text)
    (tmp_path / "own" / "eval.py").write_text(TRAIN)
    assert not SCRIPT.recognise(source)


def test_it_is_read_so_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script(tmp_path, LAUNCH)
    monkeypatch.chdir(tmp_path)
    assert run(["inspect", "run.sh", "--from", "0.8.5", "--to", "0.18.1"]) == 0
    assert "run.sh: a script that starts a Python program with vLLM" in capsys.readouterr().out
