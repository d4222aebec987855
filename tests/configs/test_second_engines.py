"""Engines for rewards and judges beside the one that is read."""

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

ROLL = """
actor_infer:
  strategy_args: {strategy_name: vllm, strategy_config: {gpu_memory_utilization: 0.8}}
rewards:
  llm_judge:
    judge_model_type: inference
    strategy_args:
      strategy_name: vllm
      strategy_config: {gpu_memory_utilization: 0.6, max_model_len: 8000}
  math: {worker_cls: x}
"""
VERL = """
actor_rollout_ref: {rollout: {name: vllm, gpu_memory_utilization: 0.5}}
reward_model:
  enable: ENABLED
  rollout: {name: vllm, gpu_memory_utilization: 0.4, tensor_model_parallel_size: 2}
"""


def test_a_judge_of_roll_is_named_and_is_not_the_rollout_engine():
    (config,) = declared()["roll"].read(Source("run.yaml", ROLL), Version("0.18.1"))
    path = "rewards.llm_judge.strategy_args"
    assert any(sentence.startswith(path) for sentence in config.not_seen)
    assert config.engine["gpu_memory_utilization"].value == 0.8


@pytest.mark.parametrize("enabled", [True, False])
def test_a_reward_model_of_verl_counts_where_it_is_on(enabled):
    text = VERL.replace("ENABLED", str(enabled).lower())
    (config,) = declared()["verl"].read(Source("run.yaml", text), Version("0.18.1"))
    assert any(sentence.startswith("reward_model.rollout") for sentence in config.not_seen) is enabled


@pytest.mark.parametrize(("precision", "deep", "variable", "lost"), [
    ("fp8", "true", "1", []), ("fp8", "false", None, []),
    ("bfloat16", "true", None, [Loss.NOT_PASSED]), ("bfloat16", "false", None, []),
])  # fmt: skip
def test_a_false_use_deep_gemm_of_nemo_rl_sets_no_variable(precision, deep, variable, lost):
    text = f"""
policy:
  generation:
    backend: vllm
    vllm_cfg: {{precision: {precision}, use_deep_gemm: {deep}, tensor_parallel_size: 1, gpu_memory_utilization: 0.6}}
grpo: {{num_prompts_per_step: 4}}
"""
    (config,) = declared()["nemo_rl"].read(Source("run.yaml", text), Version("0.18.1"))
    said = config.environment.get("VLLM_USE_DEEP_GEMM")
    assert (said.value if said is not None else None) == variable
    assert [one.loss for one in config.lost if one.name == "use_deep_gemm"] == lost


def test_nodes_of_prime_rl_are_listed_and_how_many_engines_they_are_is_open():
    from rlaudit.configs.dialects.declared import declared

    DIALECT = declared()["prime_rl"]

    text = """
[deployment]
type = "multi_node"
num_infer_nodes = 4
[inference.vllm]
model = "m"
[orchestrator]
batch_size = 8
[trainer]
"""
    (config,) = DIALECT.read(Source("rl.toml", text), Version("0.18.1"))
    assert config.options["deployment.num_infer_nodes"].value == 4
    assert isinstance(config.trainer["replicas"].value, Unknown)


def test_a_teacher_of_verl_and_a_judge_that_nemo_rl_serves_are_named():
    text = """
actor_rollout_ref: {rollout: {name: vllm}}
distillation:
  enabled: true
  teacher_models: {one: {inference: {name: vllm, gpu_memory_utilization: 0.6}}}
"""
    (config,) = declared()["verl"].read(Source("run.yaml", text), Version("0.18.1"))
    assert any(sentence.startswith("distillation.teacher_models.one.inference: ") for sentence in config.not_seen)
    text = """
policy: {generation: {backend: vllm, vllm_cfg: {precision: bfloat16, tensor_parallel_size: 1}}}
env: {judge: {local_vllm_model: {vllm_serve_kwargs: {tensor_parallel_size: 4}}}}
"""
    (config,) = declared()["nemo_rl"].read(Source("run.yaml", text), Version("0.18.1"))
    assert any(sentence.startswith("env.judge.local_vllm_model") for sentence in config.not_seen)
