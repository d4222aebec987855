import json

import pytest
from reading import read_all, read_one, source_of

from rlaudit.configs.readers.server_report import DIALECT
from rlaudit.settings.rollout_config import Origin
from rlaudit.unknown import Unknown

ARGS = "INFO 01-01 [utils.py:233] non-default args: {'model': 'org/m', 'dtype': 'float32', 'port': 1, 'seed': 3}\n"
CONFIG = (
    "(EngineCore pid=7) INFO [core.py:104] Initializing a V1 LLM engine (v0.18.1) with config: model='org/m', "
    "dtype=torch.float32, max_seq_len=512, seed=3, enable_prefix_caching=True, "
    "structured_outputs_config=SOC(a='x, y'), "
    "compilation_config={'mode': <Mode.X: 3>, 'cudagraph_mode': <CUDAGraphMode.NONE: 0>, 'dt': torch.bfloat16}\n"
)


def test_for_the_release_that_logged_values_are_resolved() -> None:
    config = read_one(DIALECT, ARGS + CONFIG, "0.18.1", "server.log")
    values = {name: (setting.value, setting.origin) for name, setting in config.engine.items()}
    assert values["dtype"] == ("float32", Origin.FILE) and values["seed"] == (3, Origin.FILE)
    assert values["enable_prefix_caching"] == (True, Origin.ENGINE) and values["max_model_len"] == (512, Origin.ENGINE)
    assert values["compilation_config"][0] == {"mode": 3, "cudagraph_mode": "NONE", "dt": "bfloat16"}
    assert isinstance(values["structured_outputs_config"][0], Unknown) and "port" not in values
    assert config.model is not None and config.model.value == "org/m"
    place = config.engine["enable_prefix_caching"].place
    assert place is not None and (ARGS + CONFIG)[place.start : place.end] == "True" and place.line == 2


def test_for_another_release_only_what_was_set_counts() -> None:
    config = read_one(DIALECT, ARGS + CONFIG, "0.32.0", "server.log")
    assert {name: setting.value for name, setting in config.engine.items()} == {"dtype": "float32", "seed": 3}


def test_without_the_line_of_arguments_a_resolved_value_is_unknown_for_another_release() -> None:
    config = read_one(DIALECT, CONFIG, "0.32.0", "server.log")
    assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)
    assert config.engine["seed"].value == 3 and config.engine["seed"].origin is Origin.FILE


def test_every_start_is_one_config_and_workers_that_repeat_it_are_not() -> None:
    assert len(read_all(DIALECT, ARGS + CONFIG + CONFIG + ARGS + CONFIG, "0.18.1", "server.log")) == 2


def test_a_namespace_of_0_8_5_prints_defaults_that_were_not_set() -> None:
    text = (
        "INFO [api_server.py:1043] vLLM API server version 0.8.5\n"
        "INFO [api_server.py:1044] args: Namespace(host=None, model='org/m', dtype='auto', max_num_seqs=8, "
        "enable_prefix_caching=None, enforce_eager=True, dispatch=<function serve at 0x1>)\n"
        "INFO Initializing a V0 LLM engine (v0.8.5) with config: model='org/m', enable_prefix_caching=False, \n"
    )
    config = read_one(DIALECT, text, "0.8.5", "server.txt")
    given = {name for name, setting in config.engine.items() if setting.origin is Origin.FILE}
    assert given == {"max_num_seqs", "enforce_eager"}
    assert config.environment["VLLM_USE_V1"].value == "0" and config.engine["enable_prefix_caching"].value is False


def server_info(form: str) -> str:
    config: object = {
        "model_config": {"model": "org/m", "dtype": "torch.bfloat16", "logprobs_mode": "raw_logprobs", "seed": 5},
        "cache_config": {"cache_dtype": "auto", "enable_prefix_caching": True},
        "scheduler_config": {"async_scheduling": True, "policy": "fcfs"},
        "compilation_config": {"mode": 3},
    }
    if form == "text":
        config = "model='org/m', dtype=torch.bfloat16, seed=5, enable_prefix_caching=True, max_seq_len=8"
    return json.dumps(
        {"vllm_config": config, "vllm_env": {"VLLM_X": 1}, "system_env": {"vllm_version": "0.18.1+cpu"}}, indent=1
    )


@pytest.mark.parametrize("form", ["json", "text"])
def test_server_info_gives_resolved_values_for_its_own_release(form: str) -> None:
    config = read_one(DIALECT, server_info(form), "0.18.1", "info.json")
    values = {name: setting.value for name, setting in config.engine.items()}
    assert values["dtype"] == "bfloat16" and values["enable_prefix_caching"] is True
    assert config.environment["VLLM_X"].value == "1"
    if form == "json":
        assert values["logprobs_mode"] == "raw_logprobs" and values["scheduling_policy"] == "fcfs"
        assert values["kv_cache_dtype"] == "auto" and values["compilation_config"] == {"mode": 3}
    later = read_one(DIALECT, server_info(form), "0.32.0", "info.json")
    assert isinstance(later.engine["enable_prefix_caching"].value, Unknown) and not later.environment


def test_a_model_that_the_server_does_not_name_is_none() -> None:
    assert read_one(DIALECT, server_info("json").replace('"org/m"', "null"), "0.18.1", "info.json").model is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", ARGS),
        ("a.md", CONFIG),
        ("a.json", '{"a": 1}'),
        ("a.json", '{"vllm_config": 1}'),
        ("a.log", "args: x\n"),
    ],
)
def test_other_files_are_not_reports(path: str, text: str) -> None:
    assert not DIALECT.recognise(source_of(text, path))
