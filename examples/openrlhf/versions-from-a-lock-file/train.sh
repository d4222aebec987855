#!/bin/bash
# The older spelling of the flags. The version that runs today is in requirements.txt beside this script.
python3 -m openrlhf.cli.train_ppo_ray \
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture \
   --vllm_num_engines 2 \
   --vllm_tensor_parallel_size 2 \
   --vllm_sync_backend nccl \
   --enable_prefix_caching \
   --enable_vllm_is_correction \
   --temperature 0.7 \
   --n_samples_per_prompt 4
