"""With load_weights alone, experts on a Blackwell are written in the checkpoint's order into a layout of blocks.

FlashInfer's TensorRT-LLM kernel, which comes first for experts in 16 bits, shuffles weights into blocks when they are
first processed. `model.load_weights` writes rows where blocks are: it raises on the shape, or, where shapes agree,
mixes experts up.
"""

from rlaudit.advisories import TRITON_EXPERTS
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import BLACKWELL, FLASHINFER_EXPERTS, LOADED, MIXTURE, UNQUANTIZED
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="experts-in-another-layout",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=TRITON_EXPERTS,
        first=Seen(
            "0.20.0",
            "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:315",
            "weights are shuffled into blocks for the kernel that comes first",
        ),
        last=Seen(
            "0.33.0",
            "vllm/model_executor/layers/fused_moe/oracle/unquantized.py:484",
            "weights are shuffled into blocks for the kernel that comes first",
        ),
    ),
    conditions=(LOADED, MIXTURE, UNQUANTIZED, BLACKWELL, FLASHINFER_EXPERTS),
    setting="moe_backend",
    way_out="Set moe_backend=triton, or update with vLLM's reload.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#56570", "verl#7978", "verl#7987"),
    escape={"moe_backend": "triton"},
)
