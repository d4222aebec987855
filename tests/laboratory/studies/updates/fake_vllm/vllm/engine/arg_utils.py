from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    model: str
    worker_extension_cls: str
    enable_prefix_caching: bool = True
    disable_log_stats: bool = False
    enable_lora: bool = False
    # What the stand-in takes and makes nothing of.
    dtype: str = "float32"
    enforce_eager: bool = True
    block_size: int = 16
    max_model_len: int = 256
    max_num_batched_tokens: int = 8192
