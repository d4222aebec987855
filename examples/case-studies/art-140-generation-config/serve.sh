#!/bin/sh
# The server that rollouts ask for completions; nothing is said of the generation config.
export VLLM_USE_V1=0
vllm serve Qwen/Qwen2.5-7B-Instruct \
  --dtype bfloat16 \
  --seed 1 \
  --max-model-len 8192 \
  --port 8000
