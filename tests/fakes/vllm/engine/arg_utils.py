"""Engine arguments of the two generations. One that a release does not know is Python's own TypeError, as in vLLM."""

import dataclasses
from typing import Any

from vllm._release import HAS_LOGPROBS_MODE, IS_V1, V1_IS_REFUSED


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
    hf_token: str | None = None

    def create_engine_config(self):
        """Nothing here; the real one makes the configuration, and chooses the engine in the same way."""
        self._is_v1_supported_oracle()

    def _is_v1_supported_oracle(self):
        if V1_IS_REFUSED:
            raise NotImplementedError("VLLM_USE_V1=1 is not supported with device type=cpu.")


@dataclasses.dataclass
class _V1(_V0):
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    async_scheduling: bool = False
    disable_cascade_attn: bool = True


@dataclasses.dataclass
class _V1WithModes(_V1):
    logprobs_mode: str = "raw_logprobs"


_FIELDS = (_V1WithModes if HAS_LOGPROBS_MODE else _V1) if IS_V1 else _V0
EngineArgs = dataclasses.make_dataclass("EngineArgs", [], bases=(_FIELDS,))
