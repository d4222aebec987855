from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    model: str
    worker_extension_cls: str
    enable_prefix_caching: bool = True
    disable_log_stats: bool = False
    enable_lora: bool = False
