"""A backend of a fork's own, `vllm_...`: the framework's file is read, without what the framework's worker decides."""

import pytest
from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Origin, RolloutConfig
from rlaudit.unknown import Unknown

NEMO = """\
loss_fn:
  ratio_clip_max: 0.2
  use_importance_sampling_correction: false
policy:
  generation:
    backend: vllm_remote
    temperature: 0.7
    vllm_cfg:
      async_engine: false
      tensor_parallel_size: 1
      enforce_eager: true
      data_parallel_size: 2
"""
NEMO_RL = declared()["nemo_rl"]
SKYRL = declared()["skyrl"]
OTHERS = (
    (
        declared()["roll"],
        "actor_infer:\n  strategy_args:\n    strategy_name: {}\n    strategy_config:\n      max_num_seqs: 8\n",
    ),
    (SKYRL, "generator:\n  num_inference_engines: 1\n  weight_sync_backend: nccl\n  backend: {}\n  max_num_seqs: 8\n"),
    (
        declared()["rlinf"],
        "rollout:\n  rollout_backend: {}\n  max_running_requests: 8\n  vllm:\n    enable_prefix_caching: true\n",
    ),
)


def read(dialect: Dialect, text: str, path: str = "run.yaml") -> tuple[RolloutConfig, ...]:
    source = Source(path, text)
    return dialect.read(source, Version("0.18.1")) if dialect.recognise(source) else ()


def test_sampling_trainer_and_objective_are_the_frameworks_and_the_engines_arguments_those_written() -> None:
    (config,) = read(NEMO_RL, NEMO)
    assert config.sampling["temperature"].value == 0.7
    assert config.trainer["importance_sampling_correction"].value is False
    assert config.options["loss_fn.ratio_clip_max"].value == 0.2
    assert config.engine["enforce_eager"].value is True
    assert all(one.origin is Origin.FILE for one in config.engine.values())
    unwritten = config.engine.get("seed")
    assert unwritten is not None and isinstance(unwritten.value, Unknown)
    assert any("vllm_remote" in one and "not NeMo-RL's own" in one for one in config.not_seen)


def test_what_the_frameworks_worker_would_pass_over_is_not_called_lost() -> None:
    (config,) = read(NEMO_RL, NEMO)
    assert config.lost == ()
    assert "resets_prefix_cache" not in config.trainer
    assert config.write("seed", 0) is None


@pytest.mark.parametrize(("dialect", "text"), OTHERS)
def test_every_framework_with_a_key_for_the_backend_reads_one_of_a_forks_own(dialect: Dialect, text: str) -> None:
    (config,) = read(dialect, text.format("vllm_remote"))
    assert config.engine["max_num_seqs"].value == 8
    assert all(one.origin is Origin.FILE for one in config.engine.values())
    assert read(dialect, text.format("sglang")) == ()
