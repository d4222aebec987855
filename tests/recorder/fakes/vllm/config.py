"""A resolved configuration."""

import dataclasses
import time


@dataclasses.dataclass
class ModelConfig:
    model: str
    dtype: str
    seed: int
    hf_token: "str | None"
    logprobs_mode: str


@dataclasses.dataclass
class CacheConfig:
    enable_prefix_caching: bool
    num_gpu_blocks: int = 128


@dataclasses.dataclass
class VllmConfig:
    model_config: ModelConfig
    cache_config: CacheConfig
    kv_transfer_config: "dict | None"
    api_key: "str | None"
    instance_id: str = ""

    def __post_init__(self):
        self.instance_id = f"{time.time_ns()}"  # as since 0.12.0
