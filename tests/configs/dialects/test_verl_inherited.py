"""What a copy of verl has in its own config stops the engine as what it has in its code."""

from pathlib import Path

import pytest
from test_verl_old_copies import ROLLOUT, copy, run

KWARGS = "    engine_kwargs: {{vllm: {{swap_space: null, disable_mm_preprocessor_cache: {value}}}}}\n"
READS = {"first": 'more = config["engine_kwargs"].get("vllm", {})', "more": "**more,"}


def with_base(root: Path, value: str, **engine: str) -> Path:
    """A copy whose own config has an argument that vLLM took away."""
    base = copy(root, "vllm_rollout_spmd.py", **engine) / "verl/trainer/config/ppo_trainer.yaml"
    base.write_text(f"actor_rollout_ref:\n  model: {{path: a/b}}{ROLLOUT}" + KWARGS.format(value=value))
    return root


@pytest.mark.parametrize("value", ["False", "True"])
def test_an_argument_of_the_copys_own_config_that_vllm_lacks_stops_the_engine(tmp_path: Path, value: str) -> None:
    (stop,) = run(with_base(tmp_path, value, **READS)).stops
    assert stop.certain and stop.where.endswith("ppo_trainer.yaml:18")


def test_a_null_and_an_argument_that_the_copy_does_not_hand_on_stop_nothing(tmp_path: Path) -> None:
    assert not run(with_base(tmp_path / "null", "null", **READS)).stops
    assert not run(with_base(tmp_path / "unread", "False")).stops


def test_what_the_user_writes_over_it_is_no_line_of_the_copys(tmp_path: Path) -> None:
    root = with_base(tmp_path, "False", **READS)
    more = "actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache="
    assert not run(root, more + "null").stops and not run(root, more + "True").stops


def test_what_the_worker_loads_besides_the_engine_is_read_for_gone_imports(tmp_path: Path) -> None:
    root = copy(tmp_path, "vllm_rollout_spmd.py")
    (root / "verl/workers/sharding_manager").mkdir()
    (root / "verl/workers/sharding_manager/fsdp_vllm.py").write_text("from verl.vllm_patches import hijack\n")
    (root / "verl/vllm_patches.py").write_text("from vllm.worker.worker_base import WorkerWrapperBase\n")
    worker = root / "verl/workers/fsdp_workers.py"
    worker.write_text("def build():\n    from verl.workers.sharding_manager.fsdp_vllm import Manager\n")
    (stop,) = run(root, "actor_rollout_ref.actor.strategy=fsdp").stops
    assert stop.certain and stop.where.endswith("vllm_patches.py:1")
    assert not run(root, "actor_rollout_ref.actor.strategy=megatron").stops


def test_a_file_that_no_worker_imports_is_not_loaded(tmp_path: Path) -> None:
    root = copy(tmp_path, "vllm_rollout_spmd.py")
    (root / "verl/workers/sharding_manager").mkdir()
    (root / "verl/workers/sharding_manager/fsdp_vllm.py").write_text("from vllm.worker.worker_base import X\n")
    (root / "verl/workers/fsdp_workers.py").write_text("import torch\n")
    assert not run(root, "actor_rollout_ref.actor.strategy=fsdp").stops
