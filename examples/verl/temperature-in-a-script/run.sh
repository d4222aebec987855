#!/usr/bin/env bash
# Overrides on the command line, as verl is mostly started: a variable and a continued line are read like a YAML file.
set -euo pipefail
export VLLM_USE_V1=1
TEMPERATURE=0.6

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_batch_size=256 \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.temperature=$TEMPERATURE \
    actor_rollout_ref.rollout.top_p=0.9 \
    actor_rollout_ref.rollout.calculate_log_probs=True \
    +actor_rollout_ref.rollout.logprobs_mode=raw_logprobs \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    trainer.nnodes=1 trainer.n_gpus_per_node=8
