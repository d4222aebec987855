"""A program whose engine another file of the project builds."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.vllm_program import PROGRAM

ENGINE = """
from vllm import LLM, SamplingParams

def start(model, length, share=0.7, eager=False):
    return LLM(model=model, max_model_len=length, gpu_memory_utilization=share, enforce_eager=eager)

def load(llm, state):
    llm.collective_rpc("load_weights", args=(state,))

def for_evaluation():
    return SamplingParams(temperature=0.0)

def for_rollouts(heat=1.0):
    return SamplingParams(temperature=heat, top_p=0.9, logprobs=0)
"""
TRAIN = """
import os
from own.engine import for_evaluation, for_rollouts, load, start
os.environ["VLLM_USE_V1"] = "1"
llm = start("org/policy", 4096, eager=True)
for step in range(8):
    out = llm.generate(prompts, for_rollouts(0.7))
    load(llm, policy.state_dict())
    print(llm.generate(held_out, for_evaluation()))
"""


def project(root: Path, train: str = TRAIN, engine: str = ENGINE) -> Source:
    """The program in a repository with the file that builds its engine."""
    for name, text in {".git/HEAD": "", "own/__init__.py": "", "own/engine.py": engine, "train.py": train}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Source(str(root / "train.py"), train)


def read(source: Source) -> RolloutConfig:
    assert PROGRAM.recognise(source)
    (config,) = PROGRAM.read(source, Version("0.18.1"))
    return config


def test_the_engine_of_another_file_is_read_with_what_the_program_hands_over(tmp_path: Path) -> None:
    config = read(project(tmp_path))
    assert {name: setting.value for name, setting in config.engine.items()} == {
        "max_model_len": 4096, "gpu_memory_utilization": 0.7, "enforce_eager": True,
    }  # fmt: skip
    assert config.model is not None and config.model.value == "org/policy"
    assert config.path.endswith("train.py") and [part.rpartition("/")[2] for part in config.parts] == ["engine.py"]
    assert config.environment["VLLM_USE_V1"].value == "1"


def test_sampling_is_that_of_the_function_which_does_not_evaluate(tmp_path: Path) -> None:
    sampling = read(project(tmp_path)).sampling
    assert (sampling["temperature"].value, sampling["top_p"].value, sampling["logprobs"].value) == (0.7, 0.9, 0)
    own = TRAIN.replace("for_rollouts(0.7)", "SamplingParams(temperature=0.5)").replace(
        "import os", "import os\nfrom vllm import SamplingParams"
    )
    assert read(project(tmp_path / "own", own)).sampling["temperature"].value == 0.5


def test_updates_of_the_program_and_its_files_are_one(tmp_path: Path) -> None:
    config = read(project(tmp_path))
    assert config.says("weight_updates") == "between rollouts" and config.says("resets_prefix_cache") is False


def test_what_is_handed_in_several_ways_is_unknown(tmp_path: Path) -> None:
    twice = TRAIN.replace("for step in", "other = start('org/judge', 1024)\nfor step in")
    assert isinstance(read(project(tmp_path / "a", twice)).engine["max_model_len"].value, Unknown)
    changed = ENGINE.replace("    return LLM", "    length = length or 8\n    return LLM")
    assert isinstance(read(project(tmp_path / "b", TRAIN, changed)).engine["max_model_len"].value, Unknown)


def test_an_engine_of_a_class_gets_what_its_constructor_gets(tmp_path: Path) -> None:
    made = "    def __init__(self, length):\n        self.llm = LLM(model='m', max_model_len=length)\n"
    built = f"from vllm import LLM\nclass Engine:\n{made}"
    config = read(project(tmp_path, "from own.engine import Engine\nengine = Engine(length=512)\n", built))
    assert config.engine["max_model_len"].value == 512


@pytest.mark.parametrize(("train", "engine"), [
    ("from own.engine import load\nload(1, 2)\n", ENGINE),  # the function that builds is not used
    ("import own\n", ENGINE),
    ("from own.engine import start\nstart()\n", "def start():\n    return 1\n"),
    ("from vllm import LLM\nfrom own.engine import start\nllm = LLM(model='m')\nstart('m', 1)\n", ENGINE),
])  # fmt: skip
def test_other_programs_are_none(tmp_path: Path, train: str, engine: str) -> None:
    assert not PROGRAM.recognise(project(tmp_path, train, engine))


def test_it_is_read_so_where_it_is_named_and_a_folder_has_the_engine_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    run(["inspect", "train.py", "--from", "0.8.5", "--to", "0.18.1"])
    assert "train.py: Python program whose engine another of its files builds" in capsys.readouterr().out
    run(["inspect", ".", "--from", "0.8.5", "--to", "0.18.1"])
    assert "1 with 1 rollout config" in capsys.readouterr().out
