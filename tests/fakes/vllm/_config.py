"""The configuration objects that a loaded engine can be asked about."""

from types import SimpleNamespace

from vllm._release import IS_V1


class Dtype:
    """Says its name as torch's dtypes do."""

    def __init__(self, name):
        self._name = name

    def __str__(self):
        return "torch." + self._name


def compilation():
    """V1 has a CUDA-graph mode and a mode of compilation, V0 a level."""
    if IS_V1:
        return SimpleNamespace(cudagraph_mode=SimpleNamespace(name="NONE"), mode=SimpleNamespace(name="NONE", value=0))
    return SimpleNamespace(level=0)


def config_of(args):
    """`vllm_config` as far as the audit reads it."""
    return SimpleNamespace(
        model_config=SimpleNamespace(
            dtype=Dtype(args.dtype),
            max_model_len=args.max_model_len,
            seed=args.seed,
            enforce_eager=args.enforce_eager,
            quantization=None,
            get_diff_sampling_param=dict,
            **({"disable_cascade_attn": True} if IS_V1 else {}),
            **({"logprobs_mode": args.logprobs_mode} if hasattr(args, "logprobs_mode") else {}),
        ),
        cache_config=SimpleNamespace(
            enable_prefix_caching=args.enable_prefix_caching, block_size=args.block_size, cache_dtype="auto"
        ),
        scheduler_config=SimpleNamespace(
            enable_chunked_prefill=args.enable_chunked_prefill,
            max_num_batched_tokens=args.max_num_batched_tokens,
            max_num_seqs=args.max_num_seqs,
            **({"async_scheduling": args.async_scheduling} if IS_V1 else {}),
        ),
        parallel_config=SimpleNamespace(tensor_parallel_size=1),
        compilation_config=compilation(),
        device_config=SimpleNamespace(device_type="cpu"),
    )
