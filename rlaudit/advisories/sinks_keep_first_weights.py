"""On a Blackwell, FlashInfer goes on with the attention sinks of the first weights.

Sinks in 16 bits are converted to float32 once, and the converted tensor is not the parameter that an update writes.
Models with sinks (gpt-oss) attend with old ones after every update. 0.26.0 copies them whenever weights are processed.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import BLACKWELL, UPDATED, model, setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="sinks-keep-first-weights",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.11.0", "vllm/v1/attention/backends/flashinfer.py", "sinks are not converted"),
        first=Seen(
            "0.11.1",
            "vllm/v1/attention/backends/flashinfer.py:1063",
            "the first processing detaches self.sinks from the parameter",
        ),
        last=Seen(
            "0.25.1",
            "vllm/v1/attention/backends/flashinfer.py:1566",
            "the first processing detaches self.sinks from the parameter",
        ),
        fixed=Seen("0.26.0", "vllm/v1/attention/backends/flashinfer.py:1646", "every processing copies the parameter"),
    ),
    conditions=(
        UPDATED,
        model("the model has attention sinks", lambda kind: kind.kind == "gpt_oss"),
        BLACKWELL,
        setting("attention_backend", "FlashInfer attends", None, "FLASHINFER"),
    ),
    setting="attention_backend",
    way_out="Move to 0.26.0 and process weights after each update.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#48251",),
)
