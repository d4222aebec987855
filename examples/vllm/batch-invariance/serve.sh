#!/bin/bash
# Batch invariance needs a backend that is named, up to 0.19, and sets NCCL variables that weight updates inherit.
export VLLM_BATCH_INVARIANT=1
vllm serve Qwen/Qwen3-8B \
    --tensor-parallel-size 2 \
    --logprobs-mode processed_logprobs \
    --generation-config vllm \
    --seed 0
