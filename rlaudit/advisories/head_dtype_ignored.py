"""`head_dtype` in hf_overrides has no effect on models that generate: the output head runs in the model's dtype.

0.10.2 documents it, and no release before 0.26.0 reads it where logits are computed.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.finding import Severity
from rlaudit.inspection.head_dtype import asked_head_dtype
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="head-dtype-ignored",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.10.1.1", "vllm/config/__init__.py", "there is no head_dtype"),
        first=Seen(
            "0.10.2",
            "vllm/model_executor/layers/logits_processor.py:111",
            "the head runs in the model's dtype, although config/__init__.py:1772 documents another",
        ),
        last=Seen("0.25.1", "vllm/config/model.py:1712", "only pooling models take it"),
        fixed=Seen("0.26.0", "vllm/model_executor/layers/logits_processor.py:62", "the head runs in head_dtype"),
    ),
    conditions=(Condition("hf_overrides asks for a head dtype", lambda side: asked_head_dtype(side) is not None),),
    setting="hf_overrides",
    way_out="Move to 0.26.0.",
    confirm="rlaudit ablate fp32-head",
    threads=("vllm#48390",),
)
