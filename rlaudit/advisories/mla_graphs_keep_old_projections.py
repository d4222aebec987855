"""After a weight update, captured decode steps of models with latent attention go on with projections that were freed.

`W_UV` and `W_UK_T` are derived from `kv_b_proj` when weights are processed. Each time they are new tensors, and CUDA
graphs keep the addresses of the old ones: decoding reads old weights, or other data that was allocated there since,
while prefill, which uses `kv_b_proj`, is right. 0.26.0 derives them in place.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import DECODE_GRAPHS, DERIVED_AGAIN, LATENT_ATTENTION
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="mla-graphs-keep-old-projections",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen(
            "0.15.1", "vllm/v1/worker/gpu_model_runner.py:4230", "a reload derives nothing from the weights again"
        ),
        first=Seen(
            "0.16.0",
            "vllm/model_executor/layers/attention/mla_attention.py:735",
            "W_UV is a new tensor whenever weights are processed",
        ),
        last=Seen(
            "0.25.1",
            "vllm/model_executor/layers/attention/mla_attention.py:960",
            "W_UV is a new tensor whenever weights are processed",
        ),
        fixed=Seen(
            "0.26.0",
            "vllm/model_executor/layers/attention/mla_attention.py:1035",
            "W_UK_T and W_UV are copied into the tensors that are there",
        ),
    ),
    conditions=(DERIVED_AGAIN, LATENT_ATTENTION, DECODE_GRAPHS),
    setting="enforce_eager",
    way_out="Move to 0.26.0, or set enforce_eager, or a cudagraph_mode of PIECEWISE.",
    confirm="Score a rollout after an update by prompt_logprobs of the same engine: decode and prefill agree.",
    threads=("vllm#48251", "vllm#48312"),
    escape={"enforce_eager": True},
)
