"""On a Blackwell the experts that are returned for replay are all zero: the kernel routes by itself, and is not asked.

FlashInfer's TensorRT-LLM kernel, which comes first for experts in 16 bits, contains the router, and only vLLM's own
router records experts. The array has the right shape, and names expert 0 for every token. 0.27.0 records the kernel's
choice, and raises for a kernel that does not return it.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import BLACKWELL, FLASHINFER_EXPERTS, MIXTURE, REPLAYS_ROUTING, UNQUANTIZED
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="routed-experts-all-zero",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen(
            "0.21.0",
            "vllm/model_executor/layers/fused_moe/routed_experts_capturer.py:820",
            "the kernel is given a buffer to record into",
        ),
        first=Seen("0.22.0", "vllm/v1/worker/gpu_model_runner.py:7263", "only vLLM's own router is asked"),
        last=Seen("0.26.0", "vllm/v1/worker/gpu_model_runner.py:7690", "only vLLM's own router is asked"),
        fixed=Seen(
            "0.27.0", "vllm/v1/worker/gpu_model_runner.py:7768", "a kernel with its own router is asked, or refused"
        ),
    ),
    conditions=(REPLAYS_ROUTING, MIXTURE, UNQUANTIZED, BLACKWELL, FLASHINFER_EXPERTS),
    setting="moe_backend",
    way_out="Set moe_backend=triton, or move to 0.27.0.",
    confirm="Count the zeros in what is returned: no layer is all zero.",
    threads=("vllm#44116", "vllm#54730"),
    escape={"moe_backend": "triton"},
)
