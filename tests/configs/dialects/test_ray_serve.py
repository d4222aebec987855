"""Ray Serve's LLMConfig, in YAML and in Python."""

import pytest
from reading import read_all, read_one, rewritten

from rlaudit.configs.dialects.ray_serve.read import DIALECT
from rlaudit.configs.rollout_config import Loss
from rlaudit.configs.syntax.node import Unknown

YAML = """\
applications:
  - args:
      llm_configs:
        - model_loading_config: {model_id: policy, model_source: org/model}
          engine_kwargs:
            tensor_parallel_size: 2
            enable_prefix_caching: false
            served_model_name: other
            no_such_argument: 1
          runtime_env: {env_vars: {VLLM_USE_V1: "1"}}
        - model_loading_config: {model_id: judge}
"""
PYTHON = """\
from ray.serve.llm import LLMConfig
config = LLMConfig(
    model_loading_config={"model_id": "policy", "model_source": "org/model"},
    engine_kwargs=KWARGS,
)
"""


def test_every_model_of_a_file_is_read() -> None:
    policy, judge = read_all(DIALECT, YAML, "0.18.1")
    assert policy.model is not None and policy.model.value == "org/model"
    assert policy.engine["enable_prefix_caching"].value is False
    assert policy.engine["distributed_executor_backend"].value == "ray"
    assert policy.environment["VLLM_USE_V1"].value == "1"
    assert {(lost.name, lost.loss) for lost in policy.lost} == {
        ("served_model_name", Loss.REFUSED), ("no_such_argument", Loss.REFUSED),
    }  # fmt: skip
    assert judge.model is not None and judge.model.value == "judge"


@pytest.mark.parametrize(
    ("kwargs", "edited"),
    [
        ('{"enforce_eager": True}', '{"enforce_eager": True, "enable_prefix_caching": False}'),
        ("dict(enforce_eager=True)", "dict(enforce_eager=True, enable_prefix_caching=False)"),
        ('{"enable_prefix_caching": True}', '{"enable_prefix_caching": False}'),
        ("{}", '{"enable_prefix_caching": False}'),
    ],
)
def test_python_is_read_and_written_as_it_is_spelt(kwargs: str, edited: str) -> None:
    text = PYTHON.replace("KWARGS", kwargs)
    config = read_one(DIALECT, text, "0.18.1", "serve.py")
    assert rewritten(config, text, "enable_prefix_caching", False) == PYTHON.replace("KWARGS", edited)


def test_keywords_that_are_built_when_it_runs_are_said_to_be() -> None:
    config = read_one(DIALECT, PYTHON.replace("KWARGS", "load()"), "0.18.1", "serve.py")
    assert any("engine_kwargs" in one for one in config.not_seen) and config.write("seed", 1) is None


@pytest.mark.parametrize("kwargs", ["load()", '{"max_num_seqs": 64, **load()}'])
def test_what_may_be_among_keywords_that_are_not_read_is_unknown(kwargs: str) -> None:
    config = read_one(DIALECT, PYTHON.replace("KWARGS", kwargs), "0.18.1", "serve.py")
    assert not config.lost and "**" not in config.engine
    assert config.engine["distributed_executor_backend"].value == "ray"
    assert isinstance(config.engine.get("enable_prefix_caching").value, Unknown)


def test_keys_that_a_loop_adds_are_no_key_of_their_own() -> None:
    text = (
        "from ray.serve.llm import LLMConfig\nkwargs = {'max_num_seqs': 64}\n"
        "for name, value in given():\n    kwargs[name] = value\n"
        "config = LLMConfig(model_loading_config={'model_id': 'policy'}, engine_kwargs=kwargs)\n"
    )
    config = read_one(DIALECT, text, "0.18.1", "serve.py")
    assert not config.lost and any("further keys of engine_kwargs" in one for one in config.not_seen)
