#!/bin/bash
# Without the correction OpenRLHF asks the engine for no logprobs, so no mismatch is ever logged.
set -x

python3 -m openrlhf.cli.train_ppo_ray \
   --actor.model_name_or_path Qwen/Qwen3-4B-Thinking-2507 \
   --vllm.num_engines 4 \
   --vllm.tensor_parallel_size 1 \
   --vllm.enable_prefix_caching \
   --vllm.enable_sleep \
   --vllm.sync_backend nccl \
   --rollout.temperature 1.0 \
   --rollout.n_samples_per_prompt 8 \
   --train.colocate_all \
   --algo.advantage.estimator reinforce
