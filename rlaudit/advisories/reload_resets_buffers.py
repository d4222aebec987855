"""vLLM's layerwise reload resets constants that no checkpoint carries, such as the router's scale of Gemma 4.

`Gemma4Router.root_size` is a buffer that is made once and never loaded. The reload allocates it anew and copies it
back: .0188 became 1.0, and the KL to the trainer rose from .008 to 1.52 after an update. 0.26.0 copies such a buffer
back only where it was loaded.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import RELOADED, model
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="reload-resets-buffers",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.18.1", "vllm/model_executor/models/gemma4.py", "there is no Gemma 4"),
        first=Seen(
            "0.19.0", "vllm/model_executor/models/gemma4.py:149", "root_size is a buffer that is not in the checkpoint"
        ),
        last=Seen(
            "0.25.1",
            "vllm/model_executor/model_loader/reload/layerwise.py:396",
            "every buffer of a layer is copied back",
        ),
        fixed=Seen(
            "0.26.0",
            "vllm/model_executor/model_loader/reload/layerwise.py:407",
            "a buffer that is not in the checkpoint and was not loaded is left alone",
        ),
    ),
    conditions=(
        RELOADED,
        model("the model is a Gemma 4 with experts", lambda kind: kind.kind.startswith("gemma4") and kind.mixture),
    ),
    setting="weight_updates",
    way_out="Move to 0.26.0.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#44371",),
)
