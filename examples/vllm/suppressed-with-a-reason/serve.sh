#!/bin/sh
# A finding is switched off where it is written, with the reason and the last day on which that holds.
# rlaudit: ignore[async-scheduling-on, until=2099-12-31] measured with rlaudit ablate: inside the noise floor
vllm serve Qwen/Qwen2.5-7B-Instruct \
    --max-model-len 8192 \
    --logprobs-mode processed_logprobs \
    --generation-config vllm \
    --seed 0
