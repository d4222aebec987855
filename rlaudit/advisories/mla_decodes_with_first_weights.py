"""With load_weights alone, models with latent attention decode with the key and value projections of the first weights.

`W_UV` and `W_UK_T`, which decoding multiplies with, are derived from `kv_b_proj` by `process_weights_after_loading`.
`model.load_weights` does not call it, so an update changes prefill and every other layer, and leaves these two behind.
The mismatch grows with the distance from the first policy. vLLM's own reload derives them again.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import LATENT_ATTENTION, LOADED
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="mla-decodes-with-first-weights",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        first=Seen(
            "0.8.5",
            "vllm/v1/attention/backends/mla/common.py:761",
            "W_UK_T is derived in process_weights_after_loading",
        ),
        last=Seen(
            "0.33.0",
            "vllm/model_executor/layers/attention/mla_attention.py:1349",
            "W_UK_T is derived in process_weights_after_loading",
        ),
    ),
    conditions=(LOADED, LATENT_ATTENTION),
    setting="weight_updates",
    way_out="Call process_weights_after_loading after each update, or use vLLM's layerwise reload.",
    confirm="Score a rollout after an update by prompt_logprobs of the same engine: decode and prefill agree.",
    threads=("vllm#48312",),
)
