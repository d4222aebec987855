"""Model Runner V2 may mask tokens that a request allows: two steps of its kernel are not ordered.

With `allowed_token_ids`, the kernel saves the allowed logits, overwrites all with minus infinity and restores the
saved ones. Nothing makes one step wait for the other. 0.25.0 has a barrier between them.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.conditions import SECOND_RUNNER
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="allowed-tokens-race",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.13.0", "vllm/v1/worker/gpu/sample/logit_bias.py", "Model Runner V2 has no allowed_token_ids"),
        first=Seen(
            "0.14.0",
            "vllm/v1/worker/gpu/sample/logit_bias.py:179",
            "logits are saved with no barrier before they are overwritten",
        ),
        last=Seen(
            "0.24.0",
            "vllm/v1/worker/gpu/sample/logit_bias.py:189",
            "logits are saved with no barrier before they are overwritten",
        ),
        fixed=Seen(
            "0.25.0", "vllm/v1/worker/gpu/sample/logit_bias.py:192", "a barrier stands between saving and overwriting"
        ),
    ),
    conditions=(
        SECOND_RUNNER,
        Condition("allowed_token_ids is set", lambda side: side.config.sampling.get("allowed_token_ids") is not None),
    ),
    setting="allowed_token_ids",
    way_out="Set VLLM_USE_V2_MODEL_RUNNER=0, or move to 0.25.0.",
    confirm="Sample with one allowed token: every sample is that token.",
)
