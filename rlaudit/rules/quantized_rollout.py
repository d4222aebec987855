"""Rollouts run quantized against a trainer in full precision.

What changed
    Nothing by itself. New releases bring more ways to quantize. From 0.14.0 on, a checkpoint's own quantization_config
    can quantize the KV cache as well.

Why it matters
    FP8 weights or KV cache move logprobs by more than any scheduling default. NeMo-RL reports k3 of 0.0018 to 0.0031
    nats with FP8 rollouts, and accepts 0.001 otherwise. Quantized rollouts need a correction in the objective, and
    their noise hides smaller causes during a migration.

Example
    Reported:

        to: 0.18.1
        engine: {quantization: fp8}
        trainer: {dtype: bfloat16, importance_sampling_correction: false, uses_rollout_logprobs: true}

    Use instead:

        engine: {quantization: null}

Safe to ignore when
    The speed is worth it, importance weights correct for it, and the mismatch metric is watched.

How to confirm
    `rlaudit ablate quick` with and without it: compare k3 with the noise of repeats.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.rollout_config import Origin
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity

NOT_QUANTIZED = ("auto", "bfloat16", "float16", "half", "float32")


def check(audit: Audit) -> Iterator[Finding]:
    """Report quantized weights, or a quantized KV cache that the config requests."""
    for setting, value in _quantized(audit.after):
        if setting == "quantization" and audit.config.facts.shares_weights is True:
            continue  # the trainer's forward pass runs through the very same quantized weights
        if "fp32" in value and audit.config.facts.rollout_head_dtype is Dtype.FLOAT32:
            continue  # PipelineRL's bf16_last_layer_fp32 is a float32 head by way of a quantization plug-in
        dtype = audit.config.facts.dtype
        precision = dtype if isinstance(dtype, Dtype) else "its own dtype"
        message = f"{engine_of(audit.after)} runs rollouts with {setting}={value}; the trainer runs in {precision}."
        if audit.config.facts.importance_sampling_correction is True:
            severity = Severity.NOTE
            message += " The importance-sampling correction is on, as quantized rollouts need it."
        else:
            severity = Severity.WARNING if audit.config.has_trainer else Severity.NOTE
            message += " Expect a mismatch that only a correction in the objective can reduce."
        yield RULE.finding(
            audit,
            severity,
            setting,
            message,
            confirm=Trial(look="run it again without this setting, and compare both runs"),
        )


def _quantized(side: Side) -> Iterator[tuple[str, str]]:
    method, cache = side.engine("quantization"), side.engine("kv_cache_dtype")
    if isinstance(method.value, str) and method.value.lower() not in ("", "none"):
        yield "quantization", method.value
    if isinstance(cache.value, str) and cache.origin is not Origin.ENGINE and cache.value not in NOT_QUANTIZED:
        yield "kv_cache_dtype", cache.value


RULE = Rule("quantized-rollout", Layer.INFERENCE_PATH, check)
