#!/bin/bash
# Partial rollouts keep their requests while new weights arrive, and a prefix cache keeps old blocks.
python3 -m molt.cli.train_rl_ray \
  --actor.model_name_or_path Qwen/Qwen3-4B \
  --vllm.num_engines 2 \
  --vllm.tensor_parallel_size 2 \
  --vllm.distributed_executor_backend mp \
  --vllm.enable_prefix_caching \
  --train.partial_rollout_enable \
  --algo.advantage.is_correction_level geo \
  --rollout.temperature 0.9 \
  --data.max_len 16384
