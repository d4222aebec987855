"""Cached prefixes are told apart by an adapter's name, so a new adapter under the old name meets the old one's keys.

Until 0.11.0 the key was the adapter's number. A trainer that gives every version a new number and the same name shared
nothing then; from 0.11.1 on it continues prompts from keys and values of older adapters. 0.31.0 adds the path, which
helps where that changes too.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import CACHE_SURVIVES, PREFIX_CACHING, UPDATED, setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="adapter-cache-by-name",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.11.0", "vllm/v1/core/kv_cache_utils.py:514", "blocks are keyed by lora_int_id"),
        first=Seen("0.11.1", "vllm/v1/core/kv_cache_utils.py:462", "blocks are keyed by lora_name"),
        last=Seen("0.30.0", "vllm/v1/core/kv_cache_utils.py:571", "blocks are keyed by lora_name"),
        fixed=Seen("0.31.0", "vllm/v1/core/kv_cache_utils.py:584", "blocks are keyed by lora_name and lora_path"),
    ),
    conditions=(setting("enable_lora", "adapters are served", True), PREFIX_CACHING, UPDATED, CACHE_SURVIVES),
    setting="enable_prefix_caching",
    way_out="Give every version of an adapter a new name, or reset the prefix cache with every update.",
    confirm="rlaudit ablate weight-update",
    threads=("vllm#30931", "vllm#42125"),
    escape={"enable_prefix_caching": False},
)
