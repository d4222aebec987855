"""A project's own program that takes vLLM's flags, started by a script."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.vllm.posted import posted
from rlaudit.configs.dialects.vllm.serve import DIALECT
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

PROGRAM = """\
import argparse
import os

os.environ.setdefault("VLLM_ATTENTION_BACKEND", "FLASHINFER")

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.v1.engine.async_llm import AsyncLLM

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bridge", action="store_true")
    parser.add_argument("--swap-space", type=int)
    parser = AsyncEngineArgs.add_cli_args(parser)
    args = parser.parse_args()
    args.max_num_seqs = 2 * args.max_num_seqs
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs.from_cli_args(args))
"""
SCRIPT = """\
#!/bin/bash
start() { "$@" & }
start env CUDA_VISIBLE_DEVICES=0 VLLM_USE_TRITON_FLASH_ATTN=0 python -m own.server \\
  --model org/model --port 8000 --bridge --swap-space 4 --mystery 3 \\
  --max-model-len 4096 --enable-lora --max-num-seqs 8 --num-scheduler-steps 4
"""


def read(project: Path, program: str = PROGRAM, vllm: str = "0.18.1", script: str = SCRIPT) -> RolloutConfig:
    (project / "own").mkdir(exist_ok=True)
    (project / "own" / "server.py").write_text(program)
    (project / "run.sh").write_text(script)
    source = Source(str(project / "run.sh"), script)
    assert DIALECT.recognise(source)
    (config,) = DIALECT.read(source, Version(vllm))
    return config


def test_flags_of_a_program_whose_parser_vllm_fills_are_vllms(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert {name: one.value for name, one in config.engine.items() if one.known} == {
        "max_model_len": 4096, "enable_lora": True, "num_scheduler_steps": 4,
    }  # fmt: skip
    assert config.model is not None and config.model.value == "org/model" and not config.offline
    assert config.parts == (str(tmp_path / "own/server.py"),)


def test_flags_of_the_programs_own_are_no_error_and_one_of_nobody_is_open(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert not config.lost and "swap_space" not in config.engine
    assert any("--mystery in line 4" in one for one in config.not_seen)


def test_an_argument_that_the_program_sets_afterwards_is_not_told_by_its_flag(tmp_path: Path) -> None:
    setting = read(tmp_path).engine["max_num_seqs"]
    assert isinstance(setting.value, Unknown) and "server.py:15" in setting.value.reason and setting.written == 8


def test_variables_of_the_program_and_of_its_command_are_those_of_the_server(tmp_path: Path) -> None:
    environment = read(tmp_path).environment
    assert environment["VLLM_ATTENTION_BACKEND"].value == "FLASHINFER"
    assert environment["VLLM_USE_TRITON_FLASH_ATTN"].value == "0"


def test_flags_that_are_gone_are_passed_over_where_the_program_parses_known_ones_only(tmp_path: Path) -> None:
    config = read(tmp_path, PROGRAM.replace("args = parser.parse_args()", "args, _ = parser.parse_known_args()"))
    assert [(one.name, one.loss) for one in config.lost] == [("num_scheduler_steps", Loss.NOT_PASSED)]


def test_v0_is_not_taken_for_what_runs_where_the_program_makes_the_engine_of_v1(tmp_path: Path) -> None:
    asked = PROGRAM.replace("VLLM_ATTENTION_BACKEND", "VLLM_USE_V1").replace('"FLASHINFER"', '"0"')
    assert isinstance(read(tmp_path, asked, "0.8.5").environment["VLLM_USE_V1"].value, Unknown)
    assert read(tmp_path, asked).environment["VLLM_USE_V1"].value == "0"


def test_a_program_named_by_its_path_is_found_though_the_script_never_says_vllm(tmp_path: Path) -> None:
    config = read(tmp_path, script="#!/bin/bash\npython own/server.py --model m --max-model-len 100\n")
    assert config.engine["max_model_len"].value == 100


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM.replace("AsyncEngineArgs.add_cli_args(parser)", "parser"),
        PROGRAM.replace("AsyncEngineArgs.from_cli_args(args)", "AsyncEngineArgs(model=args.model)"),
        PROGRAM.replace("from vllm.engine.arg_utils", "from other.arguments"),
    ],
)
def test_a_program_that_hands_no_flags_to_vllm_is_no_server(tmp_path: Path, program: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "server.py").write_text(program)
    assert not DIALECT.recognise(Source(str(tmp_path / "run.sh"), SCRIPT))


def test_a_route_that_a_server_defines_is_no_request() -> None:
    asks, defines = 'client.post("http://a/pause")\n', '@app.post("/pause")\ndef pause(): ...\n'
    assert [call.name for call in posted(Source("loop.py", asks + defines))] == ["pause_generation"]
