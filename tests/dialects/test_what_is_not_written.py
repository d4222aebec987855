"""Fixes that would not arrive, or stop the start, are not offered."""

from pathlib import Path

import pytest
from readings import NOTHING, read

VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.mode=sync actor_rollout_ref.rollout.prompt_length=512 "
    "actor_rollout_ref.rollout.response_length=512 actor_rollout_ref.rollout.max_num_batched_tokens={tokens}\n"
)
TRL = """\
from trl import GRPOConfig
from own import {trainer}
{trainer}(GRPOConfig(use_vllm=True, vllm_mode='colocate'))
"""


@pytest.mark.parametrize(("tokens", "is_written"), [(1024, True), (1023, False), ("$N", False)])
def test_verl_in_process_refuses_chunks_of_fewer_tokens_than_a_sequence(
    tmp_path: Path, tokens: object, is_written: bool
) -> None:
    row = {**NOTHING, "file": "run.sh", "text": VERL.replace("{tokens}", str(tokens))}
    (config,) = read("verl", row, "0.11.0", tmp_path)[1]
    assert (config.write("enable_chunked_prefill", True) is not None) is is_written
    assert config.write("enable_chunked_prefill", False) is not None


@pytest.mark.parametrize(("trainer", "is_written"), [("Loop", True), ("OwnTrainer", False)])
def test_nothing_is_written_for_a_trainer_of_the_projects_own(tmp_path: Path, trainer: str, is_written: bool) -> None:
    row = {**NOTHING, "file": "train.py", "text": TRL.replace("{trainer}", trainer)}
    (config,) = read("trl", row, "0.18.1", tmp_path)[1]
    assert (config.write("gpu_memory_utilization", 0.4) is not None) is is_written
