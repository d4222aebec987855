"""The config objects of a loaded engine, whose attributes are not all named as the engine's arguments are."""

from collections.abc import Mapping

# Sections of vLLM's configuration that are arguments of the engine themselves.
ARGUMENTS = frozenset({"compilation_config", "speculative_config", "kv_transfer_config", "attention_config"})
# Attributes of vLLM's config objects that EngineArgs spells differently (0.8.5 to 0.33.0).
RENAMED: Mapping[str, str] = {
    "max_seq_len": "max_model_len",
    "cache_dtype": "kv_cache_dtype",
    "chunked_prefill_enabled": "enable_chunked_prefill",
    "policy": "scheduling_policy",
}
