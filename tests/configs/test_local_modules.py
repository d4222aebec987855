"""What an imported function does with the engine that a program hands to it counts as the program's."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.readers.python import DIALECT
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig

PROGRAM = """from vllm import LLM, SamplingParams
{imports}
llm = LLM("m", enable_prefix_caching=True)
for step in range(9):
    llm.generate(prompts, SamplingParams(n=8))
    {call}
"""
HELPERS = """
def other(llm):
    llm.llm_engine.model_executor.stop()

def push(policy, llm):
    model = llm.llm_engine.model_executor.driver_worker.model_runner.model
    model.load_weights(policy.items())

def push_and_reset(policy, llm):
    llm.collective_rpc("update_weights", args=(policy,))
    llm.reset_prefix_cache()
"""


def read(folder: Path, imports: str, call: str, helpers: str = "utils.py") -> RolloutConfig:
    (folder / helpers).parent.mkdir(parents=True, exist_ok=True)
    (folder / helpers).write_text(HELPERS)
    path = folder / "train.py"
    path.write_text(PROGRAM.format(imports=imports, call=call))
    (config,) = DIALECT.read(Source(str(path), path.read_text()), Version("0.18.1"))
    return config


@pytest.mark.parametrize(
    ("imports", "call", "helpers"),
    [
        ("from utils import push", "push(policy, llm)", "utils.py"),
        ("from utils import push as load", "load(policy, llm=llm)", "utils.py"),
        ("import utils", "utils.push(policy, llm)", "utils.py"),
        ("import own.utils as u", "u.push(policy, self.engine)", "own/utils.py"),
        ("from own import utils", "utils.push(policy, llm)", "own/utils.py"),
        ("from .parts.utils import push", "push(policy, llm)", "parts/utils.py"),
        ("from own.utils import push", "push(policy, llm)", "src/own/utils.py"),
    ],
)
def test_a_function_that_is_given_the_engine_counts(imports: str, call: str, helpers: str, tmp_path: Path) -> None:
    config = read(tmp_path, imports, call, helpers)
    (update,) = config.lost_updates
    assert (Path(update.place.path).resolve(), update.place.line) == ((tmp_path / helpers).resolve(), 6)
    assert config.trainer["resets_prefix_cache"].value is False
    assert [Path(part).resolve() for part in config.parts] == [(tmp_path / helpers).resolve()]


@pytest.mark.parametrize(
    ("imports", "call"),
    [("from utils import push", "push(policy, judge)"), ("import utils", "pass"), ("import torch", "torch.push(llm)")],
)
def test_a_function_that_is_not_given_the_engine_does_not_count(imports: str, call: str, tmp_path: Path) -> None:
    config = read(tmp_path, imports, call)
    assert config.lost_updates == () and config.parts == ()


def test_a_reset_in_the_function_counts_as_well(tmp_path: Path) -> None:
    config = read(tmp_path, "from utils import push_and_reset", "push_and_reset(policy, llm)")
    assert config.lost_updates == () and config.trainer["resets_prefix_cache"].value is True
