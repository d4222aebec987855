"""vLLM's flags that a program writes as a list: for vLLM's own parser, or for a server that it starts."""

import pytest
from packaging.version import Version
from reading import read_one, rewritten

from rlaudit.configs.dialects.vllm.python import DIALECT as PYTHON
from rlaudit.configs.dialects.vllm.serve import DIALECT as SERVE
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

PARSED = """\
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.openai.cli_args import make_arg_parser
from vllm.utils import FlexibleArgumentParser

def start(model, size, tools=None):
    args = [
        "--model", model,
        "--tensor-parallel-size", str(size),
        "--max-num-seqs", "16",
    ]
    if tools:
        args += ["--enforce-eager"]
    args.extend(["--seed", "3"])
    parser = make_arg_parser(FlexibleArgumentParser())
    parsed = parser.parse_args(args=args)
    engine_args = AsyncEngineArgs.from_cli_args(parsed)
    engine_args.worker_extension_cls = "mine.Extension"
    return engine_args
"""
STARTED = """\
import subprocess, sys
words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "org/policy"]
words += ["--max-num-seqs", "16"]
if sys.argv:
    words.extend(["--enable-prefix-caching", "--seed", "1"])
words.append("--enforce-eager")
subprocess.Popen(words)
"""


def test_flags_of_a_list_that_vllms_parser_gets_are_settings() -> None:
    config = read_one(PYTHON, PARSED, "0.18.1", "run.py")
    seqs = config.engine["max_num_seqs"]
    assert seqs.value == 16 and seqs.place is not None and seqs.place.line == 9
    assert config.engine["seed"].value == 3
    assert isinstance(config.engine["tensor_parallel_size"].value, Unknown)
    assert config.model is not None and not isinstance(config.engine, Elsewhere)


def test_a_flag_under_a_condition_and_an_argument_that_is_stored_later_are_open() -> None:
    config = read_one(PYTHON, PARSED, "0.18.1", "run.py")
    eager, extension = config.engine["enforce_eager"].value, config.engine["worker_extension_cls"].value
    assert isinstance(eager, Unknown) and "line 12" in eager.reason
    assert isinstance(extension, Unknown)


@pytest.mark.parametrize("added", ["(tools)", "([*tools])", "([tools]) or args.extend(tools)"])
def test_an_addition_that_is_not_told_leaves_every_other_argument_open(added: str) -> None:
    config = read_one(PYTHON, PARSED.replace('(["--seed", "3"])', added), "0.18.1", "run.py")
    assert isinstance(config.engine, Elsewhere) and config.engine["max_num_seqs"].value == 16
    assert isinstance(config.engine["seed"].value, Unknown)


def test_a_flag_that_the_release_does_not_have_is_a_setting_of_the_list() -> None:
    config = read_one(PYTHON, PARSED.replace('"--seed", "3"', '"--logprobs-mode", "raw_logprobs"'), "0.8.5", "run.py")
    assert config.engine["logprobs_mode"].value == "raw_logprobs"


def test_a_list_without_additions_is_edited_where_it_stands() -> None:
    text = PARSED.replace('    if tools:\n        args += ["--enforce-eager"]\n    args.extend(["--seed", "3"])\n', "")
    config = read_one(PYTHON, text, "0.18.1", "run.py")
    assert '"--max-num-seqs", "32"' in rewritten(config, text, "max_num_seqs", 32)
    assert read_one(PYTHON, PARSED, "0.18.1", "run.py").write("max_num_seqs", 32) is None


def test_what_a_program_adds_to_the_words_of_a_server_is_read_and_under_a_condition_open() -> None:
    config = read_one(SERVE, STARTED, "0.18.1", "run.py")
    assert config.engine["max_num_seqs"].value == 16 and config.engine["enforce_eager"].value is True
    assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)
    assert isinstance(config.engine["seed"].value, Unknown)
    assert config.write("max_num_seqs", 32) is None


@pytest.mark.parametrize(
    "text",
    [
        PARSED.replace("parse_args(args=args)", "parse_args()"),
        PARSED.replace("args=args", "args=other"),
        PARSED.replace("from_cli_args(parsed)", "from_cli_args(parser.parse_args(['--seed', '9']))"),
    ],
)
def test_a_list_that_no_parser_gets_or_one_of_several_tells_nothing(text: str) -> None:
    config = read_one(PYTHON, text, "0.18.1", "run.py")
    assert isinstance(config.engine["max_num_seqs"].value, Unknown)


def test_a_list_of_another_function_or_given_anew_gets_nothing_of_it() -> None:
    text = 'def a():\n    words = ["vllm", "serve", "m"]\n    run(words)\ndef b(words):\n    words += ["--seed", "4"]\n'
    assert "seed" not in read_one(SERVE, text, "0.18.1", "run.py").engine
    anew = text.replace("def b(words):\n", '    words = ["vllm", "bench"]\n')
    assert "seed" not in read_one(SERVE, anew, "0.18.1", "run.py").engine


def test_hostile_lists_are_passed_over() -> None:
    deep = (
        "words = ['vllm', 'serve', 'm']\n"
        + "".join(f"{' ' * at}if x:\n" for at in range(60))
        + " " * 60
        + "words += y\n"
    )
    source = Source("run.py", deep)
    assert SERVE.recognise(source)
    assert len(SERVE.read(source, Version("0.18.1"))) == 1
