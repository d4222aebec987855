"""Why a value of vLLM matters for the logprobs that a trainer gets: layer and one clause, most telling first."""

from collections.abc import Mapping

from rlaudit.layers import Layer

_PATH = Layer.INFERENCE_PATH
WHY: Mapping[str, tuple[Layer, str]] = {
    "engine": (Layer.SEMANTIC, "V0 and V1 return logprobs of different distributions and share little code"),
    "logprobs_semantics": (Layer.SEMANTIC, "the trainer's ratio is wrong unless it computes the same kind of logprob"),
    "logprobs_mode": (Layer.SEMANTIC, "decides which distribution the returned logprobs belong to"),
    "max_logprobs": (Layer.SEMANTIC, "a request for more logprobs is refused"),
    "generation_config": (Layer.SEMANTIC, "the model's file fills in sampling parameters that a request leaves open"),
    "request_defaults": (Layer.SEMANTIC, "sampling parameters that nobody wrote shape the distribution"),
    "model_runner": (_PATH, "other sampling kernels, another order of logits processors"),
    "enable_prefix_caching": (_PATH, "keys and values of old weights survive an update unless they are reset"),
    "async_scheduling": (_PATH, "batches are composed differently; a pause finds tokens already on their way"),
    "enable_chunked_prefill": (_PATH, "prompts are computed in other batch shapes, so with other rounding"),
    "disable_cascade_attn": (_PATH, "shared prefixes are summed in another order whenever the batch is large enough"),
    "max_num_batched_tokens": (_PATH, "the size of a prefill chunk decides kernels and rounding"),
    "max_num_seqs": (_PATH, "the decode batch decides kernels and rounding"),
    "cudagraph_mode": (_PATH, "captured batches are padded, and kernels chosen for the padded size"),
    "compilation_mode": (_PATH, "a compiled model fuses operations and rounds in other places"),
    "attention_backend": (_PATH, "other attention kernels round differently"),
    "fuse_allreduce_rms": (_PATH, "the sum over ranks is rounded once less"),
    "flashinfer_sampler": (_PATH, "samples top-k and top-p by rejection: other tokens from the same seed"),
    "seed": (_PATH, "one seed for all replicas makes them sample the same tokens for the same prompt"),
    "dtype": (_PATH, "float16 and bfloat16 differ by three bits of mantissa"),
    "kv_cache_dtype": (_PATH, "an fp8 cache costs more precision than everything else here"),
    "prefix_caching_hash_algo": (_PATH, "a weak hash can share blocks of different prompts"),
    "block_size": (_PATH, "only whole blocks are shared by the prefix cache"),
    "enforce_eager": (_PATH, "compiled kernels fuse and round differently"),
    "optimization_level": (_PATH, "decides which fusions the compiler makes"),
    "gpu_memory_utilization": (_PATH, "more or fewer blocks change when requests are preempted and recomputed"),
    "distributed_executor_backend": (_PATH, "decides what async scheduling may do"),
    "VLLM_ALLREDUCE_USE_SYMM_MEM": (_PATH, "another algorithm sums over tensor parallel ranks"),
    "VLLM_ALLREDUCE_USE_FLASHINFER": (_PATH, "another algorithm sums over tensor parallel ranks"),
    "VLLM_USE_DEEP_GEMM": (_PATH, "other fp8 matrix kernels"),
    "VLLM_USE_FLASHINFER_SAMPLER": (_PATH, "samples top-k and top-p by rejection: other tokens from the same seed"),
    "VLLM_USE_V2_MODEL_RUNNER": (_PATH, "other sampling kernels, another order of logits processors"),
    "VLLM_USE_RAY_V2_EXECUTOR_BACKEND": (_PATH, "with it Ray takes async scheduling too"),
    "pause_generation": (_PATH, "decides whether running requests keep keys and values of the old weights"),
    "reset_prefix_cache": (_PATH, "decides what a weight update leaves in the cache"),
}
