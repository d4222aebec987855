"""What a program's name says of it, and that none which only generates or evaluates is read as a trainer."""

from pathlib import Path

import pytest

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source

SKYRL, TRL, VERL = declared()["skyrl"], declared()["trl"], declared()["verl"]

OVERRIDES = {
    "verl": (VERL, "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.top_k=50"),
    "skyrl": (SKYRL, "generator.backend=vllm generator.inference_engine_tensor_parallel_size=2"),
}


@pytest.mark.parametrize("framework", OVERRIDES)
@pytest.mark.parametrize(("program", "trains"), [
    ("python3 -m pkg.main_ppo", True),
    ("python3 pkg/run_anything.py", True),
    ("python3 -m pkg.generation.main_ppo", True),
    ("python3 train_and_eval.py", True),
    ("python3 -m pkg.main_generation", False),
    ("python3 -m torch.distributed.run pkg/main_generate_server.py", False),
    ("ray job submit -- python3 tools/evaluate.py", False),
])  # fmt: skip
def test_overrides_of_a_program_that_only_generates_are_no_trainers(framework: str, program: str, trains: bool) -> None:
    dialect, overrides = OVERRIDES[framework]
    assert dialect.recognise(Source("run.sh", f"{program} {overrides}\n")) is trains


@pytest.mark.parametrize(("line", "trains"), [
    ("accelerate launch grpo_vlm.py --use_vllm", True),
    ("python -m pkg.scripts.online_dpo --use_vllm", True),
    ("torchrun main.py --use_vllm --num_generations 8", True),
    ("python main.py --use_vllm --learning_rate 1e-6", True),
    ("trl grpo --use_vllm", True),
    ("python -m suite.task.run_eval --model m --use_vllm", False),
    ("python run_eval.py --use_vllm --config task.yaml", False),
    ("python src/train.py --use_vllm --config gone.yaml", True),
    ("python constrained.py --use_vllm --config gone.yaml", False),
    ("python generate.py --use_vllm --vllm_gpu_memory_utilization 0.5", False),
    ("python predict.py --use_vllm --max_new_tokens 64", False),
    ("python ask.py --use_vllm --max_new_tokens 64 --temperature 0", False),
])  # fmt: skip
def test_use_vllm_alone_makes_no_trainer_of_a_script(line: str, trains: bool) -> None:
    assert TRL.recognise(Source("run.sh", f"{line}\n")) is trains


def test_a_program_whose_name_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in ("a" * 5000, "src/" + "b" * 300):
        source = Source(str(tmp_path / "run.sh"), f"python {name}.py --use_vllm true\n")
        assert [program_source(source, command) for command in source.commands] == [None] * len(source.commands)
