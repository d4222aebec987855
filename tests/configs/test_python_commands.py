"""Commands that a Python program writes as lists are read by every dialect that is read from a command line."""

import pytest
from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.serve import DIALECT as VLLM
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.syntax.spelling import apply
from rlaudit.dialects.declared import declared

OPENRLHF, VERL = declared()["openrlhf"], declared()["verl"]

VERL_RUN = """\
import os
os.environ["VLLM_USE_V1"] = "1"
TP = 4
def command(heat, more):
    words = [
        "python", "-m", "verl.trainer.main_ppo",
        "actor_rollout_ref.rollout.name=vllm",
        f"actor_rollout_ref.rollout.tensor_model_parallel_size={TP}",
        f"actor_rollout_ref.rollout.temperature={heat}",
    ]
    words += more
    return words
"""
SERVER = """\
import subprocess
EXTRA = ["--seed", "3"]
subprocess.Popen(["vllm", "serve", MODEL, *EXTRA, "--max-num-seqs", str(8)])
"""


def read(framework: Dialect, text: str) -> RolloutConfig:
    source = Source("run.py", text)
    assert framework.recognise(source)
    (config,) = framework.read(source, Version("0.18.1"))
    return config


def test_overrides_in_a_list_keep_their_lines_and_what_a_run_decides_is_unknown() -> None:
    config = read(VERL, VERL_RUN)
    size, heat = config.engine["tensor_parallel_size"], config.sampling["temperature"]
    assert size.value == 4 and size.place is not None and size.place.line == 8
    assert isinstance(heat.value, Unknown) and "argument of command()" in heat.value.reason
    assert config.environment["VLLM_USE_V1"].value == "1"
    assert "what is added to words may hold further overrides" in config.not_seen


@pytest.mark.parametrize(
    "adds", ["words.extend([{}])", "words += [{}]", "words = words + [{}]", "words.extend([{},])\n    start(words)"]
)
@pytest.mark.parametrize("heat", ["f'actor_rollout_ref.rollout.temperature={heat}'", "'algorithm.adv_estimator=grpo'"])
def test_overrides_that_are_added_to_a_list_alone_are_read(adds: str, heat: str) -> None:
    more = f"'actor_rollout_ref.rollout.name=vllm', 'actor_rollout_ref.rollout.max_num_seqs=64', {heat}"
    text = f"def start(heat):\n    words = ['python', '-m', 'verl.trainer.main_ppo']\n    {adds.format(more)}\n"
    config = read(VERL, text)
    assert config.engine["max_num_seqs"].value == 64
    assert isinstance(config.sampling["temperature"].value, Unknown) is heat.startswith("f")


def test_a_list_of_formatted_overrides_alone_is_read() -> None:
    text = "run(['python', '-m', 'verl.trainer.main_ppo', f'actor_rollout_ref.rollout.max_num_seqs={n}'])\n"
    assert isinstance(read(VERL, text).engine["max_num_seqs"].value, Unknown)


def test_a_server_started_with_a_starred_list_is_read_and_edited_in_the_list() -> None:
    config = read(VLLM, SERVER)
    assert (config.engine["seed"].value, config.engine["max_num_seqs"].value) == (3, 8)
    edits = config.write("generation_config", "vllm")
    assert edits is not None
    assert apply(SERVER, edits) == SERVER.replace("str(8)", 'str(8), "--generation-config", "vllm"')


def test_a_tuple_of_options_is_a_command_too() -> None:
    options = "'--vllm.num_engines', f'{n}', '--rollout.temperature', 1"
    text = f"run(('python', '-m', 'openrlhf.cli.train_ppo_ray', {options}))\n"
    config = read(OPENRLHF, text)
    assert config.sampling["temperature"].value == 1.0 and isinstance(config.trainer["replicas"].value, Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "MARKS = ['actor_rollout_ref.rollout.temperature=1', 'actor_rollout_ref.rollout.n=2']\n",
        "run(['python', '-m', 'verl', 'actor_rollout_ref.rollout.n=1'\n",
    ],
)
def test_a_list_that_starts_nothing_and_a_broken_file_hold_no_command(text: str) -> None:
    assert not VERL.recognise(Source("run.py", text))


@pytest.mark.parametrize(
    "made",
    [
        'env = os.environ.copy()\nenv["VLLM_SERVER_DEV_MODE"] = "1"\n',
        'env = dict(os.environ, VLLM_SERVER_DEV_MODE="1")\n',
        'env = {**os.environ, "VLLM_SERVER_DEV_MODE": "1"}\n',
        'os.environ["VLLM_SERVER_DEV_MODE"] = "1"\n',
    ],
)
def test_an_environment_that_is_handed_to_the_command_counts_for_it(made: str) -> None:
    source = Source("start.py", f"import os, subprocess\n{made}subprocess.Popen(['vllm', 'serve', 'm'], env=env)\n")
    assert python_environment(source, ("VLLM_",), handed_on=True)["VLLM_SERVER_DEV_MODE"].value == "1"
    assert bool(python_environment(source, ("VLLM_",))) == made.startswith("os.")


@pytest.mark.parametrize(
    ("variables", "line", "value"),
    [
        ("{'VLLM_X': '1', 'A': b}", "os.environ[k] = v", "1"),
        ("SET", "os.environ[k] = str(v)", "2"),
        ("SET", "if k not in os.environ: os.environ[k] = v", "2"),
        ("elsewhere()", "os.environ[k] = v", None),
        ("SET", "print(k, v)", None),
    ],
)
def test_variables_that_a_loop_sets_are_those_of_its_dictionary(variables: str, line: str, value: str | None) -> None:
    text = f"import os\nSET = {{'VLLM_X': 2}}\nfor k, v in {variables}.items():\n    {line}\n"
    found = python_environment(Source("start.py", text), ("VLLM_",)).get("VLLM_X")
    assert (found.value if found is not None else None) == value


@pytest.mark.parametrize(("written", "value"), [("False", "0"), ("True", "1"), ("wanted", None)])
def test_vllms_own_function_chooses_the_engine(written: str, value: str | None) -> None:
    source = Source("run.py", f"from vllm.envs import set_vllm_use_v1\nset_vllm_use_v1({written})\n")
    chosen = python_environment(source)["VLLM_USE_V1"]
    assert chosen.place.line == 2
    assert isinstance(chosen.value, Unknown) if value is None else chosen.value == value


@pytest.mark.parametrize(("asked", "value"), [("'VLLM_X', '0'", "0"), ("'VLLM_Y', '0'", None), ("'VLLM_X'", None)])
def test_a_variable_that_is_set_to_itself_or_a_default_has_the_default(asked: str, value: str | None) -> None:
    source = Source("run.py", f"import os\nos.environ['VLLM_X'] = os.environ.get({asked})\n")
    found = python_environment(source)["VLLM_X"].value
    assert isinstance(found, Unknown) if value is None else found == value
