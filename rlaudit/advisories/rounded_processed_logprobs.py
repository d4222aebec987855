"""Model Runner V2 divides logits by the temperature in half precision, so processed logprobs are rounded.

The copy to float32 that stood before the sampling parameters was skipped: logits keep the head's dtype, are divided in
place, and their log-softmax is returned. The logprobs are those that were sampled from, so the mean importance ratio
stays one and the noise looks like that of the model's body: k2 of 4e-5 to 8e-4, simulated. The change came with
vllm#48641 and was taken back by #49033 on the main branch, not on this release's.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import HALF_PRECISION_HEAD, PROCESSED_LOGPROBS, SECOND_RUNNER, TEMPERATURE_NOT_ONE
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

_SAMPLER = "vllm/v1/worker/gpu/sample/sampler.py"

ADVISORY = Advisory(
    name="rounded-processed-logprobs",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.25.1", f"{_SAMPLER}:157", "logits are copied to float32 first"),
        first=Seen("0.26.0", f"{_SAMPLER}:162", "logits keep their dtype"),
        last=Seen("0.26.0", f"{_SAMPLER}:162", "logits keep their dtype"),
        fixed=Seen("0.27.0", f"{_SAMPLER}:159", "logits are copied to float32 first"),
    ),
    conditions=(SECOND_RUNNER, PROCESSED_LOGPROBS, TEMPERATURE_NOT_ONE, HALF_PRECISION_HEAD),
    setting="logprobs_mode",
    way_out="Move to 0.27.0, set VLLM_USE_V2_MODEL_RUNNER=0, or run the head in float32.",
    confirm="rlaudit ablate logprobs-mode",
    threads=("vllm#48641", "vllm#49033"),
)
