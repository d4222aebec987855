"""vLLM's layerwise reload writes uninitialised memory over the convolution weights of Mamba-2 layers.

`conv_weights` is a buffer that is a view of `conv1d.weight`. The reload takes it for a tensor of its own, allocates it,
and copies what it never loaded back into the storage that both share. Logits become NaN, or garbage, after the first
update; with a lag of some steps it shows some steps later. 0.22.0 leaves out buffers that alias a parameter.
"""

from rlaudit.advisories import BEFORE_LAYERWISE_RELOAD
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import MAMBA2, RELOADED, patched_by
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="reload-copies-aliased-buffers",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=BEFORE_LAYERWISE_RELOAD,
        first=Seen(
            "0.16.0",
            "vllm/model_executor/model_loader/reload/layerwise.py:246",
            "every buffer of a layer is copied back",
        ),
        last=Seen(
            "0.21.0",
            "vllm/model_executor/model_loader/reload/layerwise.py:383",
            "every buffer of a layer is copied back",
        ),
        fixed=Seen(
            "0.22.0",
            "vllm/model_executor/model_loader/reload/meta.py:108",
            "a buffer that aliases a parameter is not captured",
        ),
    ),
    conditions=(RELOADED, MAMBA2),
    setting="weight_updates",
    way_out="Move to 0.24.0, or load with model.load_weights and no reload.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("vllm#42481", "prime-rl#2482"),
    workarounds=(patched_by("prime_rl", "0.20.2", "prime-rl b2ba40b and later patch it"),),
)
