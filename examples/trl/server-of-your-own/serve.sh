#!/bin/sh
# A server that is started by hand for TRL's server mode. Only `trl vllm-serve` would set the logprobs mode by itself.
vllm serve Qwen/Qwen2.5-7B-Instruct \
    --tensor-parallel-size 2 \
    --max-model-len 8192 \
    --no-enable-prefix-caching \
    --seed 3
