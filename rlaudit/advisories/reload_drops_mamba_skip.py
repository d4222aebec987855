"""vLLM's layerwise reload never loads the last parameter of a Mamba-2 mixer, the skip connection `D`.

Loading is counted in elements, and a layer is finished when the count is full. `A` has a loader that copies twice, so
it counts twice, and the layer is finished before `D` arrives: it stays uninitialised, and reads back as NaN, infinite
or huge values. 0.24.0 counts no parameter beyond its own size.
"""

from rlaudit.advisories import BEFORE_LAYERWISE_RELOAD
from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import MAMBA2, RELOADED, patched_by
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="reload-drops-mamba-skip",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=BEFORE_LAYERWISE_RELOAD,
        first=Seen(
            "0.16.0",
            "vllm/model_executor/model_loader/reload/meta.py:146",
            "what a loader copied is counted, twice where it copies twice",
        ),
        last=Seen(
            "0.23.0",
            "vllm/model_executor/model_loader/reload/meta.py:188",
            "what a loader copied is counted, twice where it copies twice",
        ),
        fixed=Seen(
            "0.24.0",
            "vllm/model_executor/model_loader/reload/meta.py:201",
            "the count is capped at the parameter's size",
        ),
    ),
    conditions=(RELOADED, MAMBA2),
    setting="weight_updates",
    way_out="Move to 0.24.0, or load with model.load_weights and no reload.",
    confirm="rlaudit ablate weight-update, with this model under its engine",
    threads=("prime-rl#2714", "vllm#48284"),
    workarounds=(
        patched_by("prime_rl", "0.22.0", "prime-rl 7f6ca61 and later patch it"),
        patched_by("skyrl", "0.21.0", "SkyRL fedc0b7 and later patch it"),
    ),
)
