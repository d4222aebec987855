"""After a weight update that is processed again, CUDA graphs go on with the expert weights of before.

FlashInfer's kernels, which these releases choose first, want experts in another layout. Each processing makes a
new parameter in it, and captured steps keep the address of the old one: decoding runs on old experts and prefill on new
ones. 0.21.0 copies into the parameter that is there (vllm#40390).
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import FLASHINFER_EXPERTS, GRAPHS, MIXTURE, PROCESSED, UNQUANTIZED, gpu
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="graphs-keep-replaced-experts",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen(
            "0.19.1",
            "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:142",
            "Triton is the default, which keeps the layout and with it the storage",
        ),
        first=Seen(
            "0.20.0", "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:69", "FlashInfer comes before Triton"
        ),
        last=Seen(
            "0.20.2",
            "vllm/model_executor/layers/fused_moe/unquantized_fused_moe_method.py:163",
            "w13_weight is registered anew at every processing",
        ),
        fixed=Seen(
            "0.21.0",
            "vllm/model_executor/layers/fused_moe/unquantized_fused_moe_method.py:171",
            "w13_weight is copied into its storage on updates",
        ),
    ),
    conditions=(
        PROCESSED,
        MIXTURE,
        UNQUANTIZED,
        GRAPHS,
        gpu("the GPU is a Hopper or a Blackwell", 9, 10, 12),
        FLASHINFER_EXPERTS,
    ),
    setting="enforce_eager",
    way_out="Move to 0.21.0, set moe_backend=triton, or set enforce_eager.",
    confirm="Score a rollout after an update by prompt_logprobs of the same engine: decode and prefill agree.",
    threads=("vllm#40390", "NeMo-RL#2895"),
    escape={"moe_backend": "triton"},
)
