"""With load_weights alone, the gate and up projections of every expert change places at the first update.

On Hopper these releases choose FlashInfer's CUTLASS kernel for experts in 16 bits, which wants [up; gate] and swaps the
halves once, when weights are first processed. `model.load_weights` then writes [gate; up] into it. The output is not
garbage, and not the policy's. From 0.23.0 on Triton comes first on Hopper, and keeps the checkpoint's order.
"""

from rlaudit.advisories import TRITON_EXPERTS
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import FLASHINFER_EXPERTS, HOPPER, LOADED, MIXTURE, UNQUANTIZED
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="experts-swapped-by-plain-loads",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=TRITON_EXPERTS,
        first=Seen(
            "0.20.0",
            "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:309",
            "the halves of w13 are swapped for FlashInfer, which comes first",
        ),
        last=Seen(
            "0.22.1",
            "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:308",
            "the halves of w13 are swapped for FlashInfer, which comes first",
        ),
        fixed=Seen(
            "0.23.0", "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:73", "on Hopper FlashInfer comes last"
        ),
    ),
    conditions=(LOADED, MIXTURE, UNQUANTIZED, HOPPER, FLASHINFER_EXPERTS),
    setting="moe_backend",
    way_out="Set moe_backend=triton, move to 0.23.0, or update with vLLM's reload.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#42821", "vllm#42823", "SkyRL#1680", "SkyRL#1737"),
    escape={"moe_backend": "triton"},
)
