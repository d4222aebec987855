"""The dtype of the KV cache is left to vLLM, which from 0.14.0 on may take fp8 from the checkpoint.

What changed
    `kv_cache_dtype=auto` meant the model's dtype up to 0.13.0. From 0.14.0 it first asks the checkpoint's
    `quantization_config` for a KV cache scheme (vllm/utils/torch_utils.py, resolve_kv_cache_dtype_string).

Why it matters
    An fp8 cache stores keys and values with three bits of mantissa. Every token after the prompt attends to them,
    and the trainer has nothing like it: the mismatch grows with the length of the completion.

Example
    Reported:

        from: 0.13.0
        to: 0.18.1
        model: example/quantized-FP8

    Use instead:

        engine: {kv_cache_dtype: bfloat16}

Safe to ignore when
    the checkpoint's config.json has no `kv_cache_scheme` or `kv_cache_quant_algo`.

How to confirm
    Look for kv_cache_dtype in the engine's start-up log of both versions, or run `rlaudit ablate CONFIG --from A --to B
    --factor engine-version`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import WeightUpdates
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import CACHE_DTYPE_FROM_CHECKPOINT

SETTING = "kv_cache_dtype"
# Words in the names of checkpoints that may carry a scheme for the cache.
QUANTIZED = ("fp8", "nvfp4", "fp4", "modelopt", "w8a8", "w4a16")


def check(audit: Audit) -> Iterator[Finding]:
    """Report auto across 0.14.0, with a checkpoint that quantises the cache, or may."""
    setting = audit.config.engine.get(SETTING)
    if not audit.crosses(CACHE_DTYPE_FROM_CHECKPOINT) or (setting is not None and setting.value not in (None, "auto")):
        return
    runs = audit.after.value(SETTING)
    if isinstance(runs, Unknown):
        clue, does = runs.reason, "takes the cache's dtype from the checkpoint"
    elif audit.after.resolution.checkpoint is None and (clue := _may_quantise(audit)):
        does = "stores keys and values in fp8 if the checkpoint says so"
    else:
        return
    message = (
        f"kv_cache_dtype is auto and {clue}: vLLM {audit.after.version} {does}, where {audit.before.version} kept the "
        "model's dtype. Set kv_cache_dtype to what you mean."
    )
    fix = None
    declared, dtype = audit.after.catalogue.engine.get(SETTING), audit.after.value("dtype")
    wanted = dtype if isinstance(dtype, str) and dtype != "auto" else "bfloat16"
    if declared is not None and declared.choices is not None and wanted in declared.choices:
        fix = audit.fix(f"Keep the KV cache in {wanted}", safe=False, kv_cache_dtype=wanted)
    confirm = Trial()
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, fix, confirm, by=("model",))


def _may_quantise(audit: Audit) -> str:
    quantization = audit.after.value("quantization")
    # A trainer sends full-precision weights, which the engine quantizes itself: their checkpoint has no scheme.
    sent = audit.config.facts.weight_updates in (WeightUpdates.BETWEEN_ROLLOUTS, WeightUpdates.IN_FLIGHT)
    if not sent and isinstance(quantization, str) and any(word in quantization.lower() for word in QUANTIZED):
        return f"quantization is {quantization}"
    name = audit.config.model.value if audit.config.model is not None else None
    if isinstance(name, str) and any(word in name.lower() for word in QUANTIZED):
        return f"{name} has the name of a quantised checkpoint"
    return ""


RULE = Rule("kv-cache-dtype-from-checkpoint", Layer.INFERENCE_PATH, check, defaults=("kv_cache_dtype",))
