"""Arguments of an engine."""

import dataclasses

from vllm.config import CacheConfig, ModelConfig, VllmConfig
from vllm.plugins import load_general_plugins


@dataclasses.dataclass
class EngineArgs:
    model: str = "a-model"
    dtype: str = "auto"
    seed: int = 0
    enable_prefix_caching: "bool | None" = None
    logprobs_mode: str = "raw_logprobs"
    hf_token: "str | None" = None
    api_key: "str | None" = None
    kv_transfer_config: "dict | None" = None
    hf_overrides: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        load_general_plugins()

    def create_engine_config(self):
        if self.dtype == "int3":
            raise ValueError(f"no such dtype: int3, of {self.model} with {self.hf_token}")
        if self.enable_prefix_caching is None:
            self.enable_prefix_caching = True
        model = ModelConfig(self.model, self.dtype, self.seed, self.hf_token, self.logprobs_mode)
        return VllmConfig(model, CacheConfig(self.enable_prefix_caching), self.kv_transfer_config, self.api_key)
