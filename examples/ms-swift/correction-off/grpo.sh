# Processed logprobs come by themselves from vLLM 0.10.2 on; with the correction off no mismatch is logged.
NPROC_PER_NODE=4 swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2.5-7B-Instruct \
    --torch_dtype bfloat16 \
    --use_vllm true \
    --vllm_mode colocate \
    --vllm_gpu_memory_utilization 0.5 \
    --vllm_tensor_parallel_size 2 \
    --vllm_engine_kwargs '{"async_scheduling": false, "disable_cascade_attn": true}' \
    --temperature 0.9 \
    --top_p 1.0 \
    --top_k -1 \
    --num_generations 8
