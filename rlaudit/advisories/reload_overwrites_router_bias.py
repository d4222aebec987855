"""vLLM's layerwise reload overwrites the bias that corrects the router's choice of experts with uninitialised memory.

The gate and the expert layer share `e_score_correction_bias`. It is loaded by the gate, and counted by both: the expert
layer never gets all that it counts, is finished at the end of the reload, and copies its own, never loaded copy over
the shared one. Experts are then chosen at random. 0.20.0 skips the bias in the expert layer.
"""

from rlaudit.advisories import BEFORE_LAYERWISE_RELOAD
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import RELOADED, model
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="reload-overwrites-router-bias",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=BEFORE_LAYERWISE_RELOAD,
        first=Seen(
            "0.16.0",
            "vllm/model_executor/model_loader/reload/meta.py:24",
            "the tensors to skip do not name e_score_correction_bias",
        ),
        last=Seen(
            "0.19.1",
            "vllm/model_executor/model_loader/reload/meta.py:24",
            "the tensors to skip do not name e_score_correction_bias",
        ),
        fixed=Seen(
            "0.20.0", "vllm/model_executor/model_loader/reload/meta.py:30", "e_score_correction_bias is skipped"
        ),
    ),
    conditions=(RELOADED, model("the router is corrected by a learnt bias", lambda kind: kind.biased_router)),
    setting="weight_updates",
    way_out="Move to 0.20.0.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#38746",),
)
