#!/bin/sh
# Flags and a variable of 0.8.5 that 0.18.1 rejects, or ignores without a word.
export VLLM_USE_V1=0
export VLLM_ATTENTION_BACKEND=FLASH_ATTN

exec python -m vllm.entrypoints.openai.api_server \
    --model Qwen/Qwen2.5-7B-Instruct \
    --num-scheduler-steps 8 \
    --swap-space 16 \
    --disable-log-requests \
    --max-seq-len-to-capture 16384
