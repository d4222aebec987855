"""A resolved configuration."""

import dataclasses


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
