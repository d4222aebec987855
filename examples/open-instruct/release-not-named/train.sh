#!/bin/bash
# open-instruct sets processed logprobs in code; a vLLM that has no such argument does not take them.
python open_instruct/grpo_fast.py \
    --exp_name math \
    --model_name_or_path Qwen/Qwen2.5-7B \
    --num_unique_prompts_rollout 64 \
    --num_samples_per_prompt_rollout 8 \
    --temperature 0.8 \
    --vllm_num_engines 8 \
    --vllm_tensor_parallel_size 1 \
    --vllm_enable_prefix_caching \
    --inflight_updates True
