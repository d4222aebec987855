"""Adapters on the experts of gpt-oss and Qwen3-VL mixtures are read with rank and expert in the wrong order.

The second matrix of such an adapter has the shape (output, rank * experts), with the rank outside. It is read with the
experts outside: every expert gets slices of all others' adapters. Of 100 answers none was that of Transformers, and 98
with the order put right (vllm#31534).
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import model, setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer


def _on_experts(side: Side) -> bool | Unknown:
    modules = side.config.engine.get("lora_target_modules")
    if modules is None or not isinstance(modules.value, list):
        return Unknown("whether adapters are on experts is not told by this file")
    return any("expert" in str(module) for module in modules.value)


ADVISORY = Advisory(
    name="expert-adapters-transposed",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.11.2", "vllm/lora/layers/fused_moe.py", "stacked experts take no adapters"),
        first=Seen("0.12.0", "vllm/lora/layers/fused_moe.py:683", "reshaped to (output, experts, rank)"),
        last=Seen("0.13.0", "vllm/lora/layers/fused_moe.py:683", "reshaped to (output, experts, rank)"),
        fixed=Seen("0.14.0", "vllm/lora/model_manager.py:637", "reshaped to (output, rank, experts)"),
    ),
    conditions=(
        setting("enable_lora", "adapters are served", True),
        model("experts are stacked", lambda kind: kind.kind in ("gpt_oss", "qwen3_vl_moe")),
        Condition("adapters are on experts", _on_experts),
    ),
    setting="enable_lora",
    way_out="Move to 0.14.0, or leave the experts out of the adapter.",
    confirm="Compare greedy answers with the adapter in vLLM and in Transformers.",
    threads=("vllm#31534",),
)
