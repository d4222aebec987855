"""Engine arguments of the two generations. One that a release does not know is Python's own TypeError, as in vLLM."""

import dataclasses
from typing import Any

from vllm._release import IS_V1


@dataclasses.dataclass
class _V0:
    model: str = ""
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: str = "float32"
    seed: int = 0
    max_model_len: int = 1024
    block_size: int = 16
    enforce_eager: bool = False
    enable_prefix_caching: bool = False
    enable_chunked_prefill: bool = False
    max_num_batched_tokens: int = 1024
    max_num_seqs: int = 256
    worker_extension_cls: str = ""
    hf_overrides: dict[str, Any] | None = None


@dataclasses.dataclass
class _V1(_V0):
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    logprobs_mode: str = "raw_logprobs"
    async_scheduling: bool = False
    disable_cascade_attn: bool = True


EngineArgs = dataclasses.make_dataclass("EngineArgs", [], bases=(_V1 if IS_V1 else _V0,))
