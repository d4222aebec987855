"""The dtype is left to vLLM, and what it makes of some checkpoints differs between releases.

What changed
    With `dtype=auto` a float32 checkpoint ran as float16 up to 0.9.0.1, and as bfloat16 (on sm80 and later) from 0.9.1
    (vllm/config.py:3185). 0.8.5 reads only `torch_dtype` in a model's config.json. transformers writes `dtype` from
    4.56 on; such a model counts as float32 there and runs as float16. Current releases read both.

Why it matters
    float16 and bfloat16 round differently in every layer. Against a trainer in bfloat16 the wrong one is a mismatch of
    the size of an unmatched lm_head. It comes or goes with an upgrade that seems to have nothing to do with precision.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        trainer: {dtype: bfloat16}

    Use instead:

        engine: {dtype: bfloat16}

Safe to ignore when
    the checkpoint's config.json says `"torch_dtype": "bfloat16"` (or float16), which every release reads alike.

How to confirm
    Look at the dtype in the engine's start-up log of both versions, or run `rlaudit ablate CONFIG --from A --to B
    --factor dtype`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import FLOAT32_RUNS_AS_BFLOAT16

SETTING = "dtype"
CONFIRM = Trial(("dtype",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report a dtype left open or auto, in or out of the releases that make float16 of float32."""
    setting = audit.config.engine.get(SETTING)
    if setting is not None and setting.value not in (None, "auto"):
        return
    trainer = audit.config.facts.dtype
    before, after = audit.before.value(SETTING), audit.after.value(SETTING)
    are_known = not isinstance(before, Unknown) and not isinstance(after, Unknown)
    old = audit.after.version < FLOAT32_RUNS_AS_BFLOAT16
    severity = Severity.WARNING
    if are_known and audit.migrates and before != after:
        message = (
            f"dtype is left to the checkpoint, which vLLM {audit.before.version} runs in {before} and vLLM "
            f"{audit.after.version} in {after}."
        )
    elif not are_known and audit.crosses(FLOAT32_RUNS_AS_BFLOAT16):
        severity = Severity.NOTE
        message = (
            "dtype is left to the checkpoint. A float32 checkpoint, or one without torch_dtype in its config.json, "
            f"runs as float16 on vLLM {audit.before.version} and as bfloat16 on vLLM {audit.after.version}."
        )
    elif isinstance(after, Unknown) and old and trainer in (Dtype.FLOAT32, Dtype.BFLOAT16):
        message = (
            f"dtype is left to the checkpoint. vLLM {audit.after.version} runs a float32 checkpoint, or one without "
            f"torch_dtype in its config.json, as float16. The trainer computes in {trainer}."
        )
    else:
        return
    message += " Write the dtype you mean."
    fix = None
    if trainer in (Dtype.BFLOAT16, Dtype.FLOAT16):
        fix = audit.fix("Run the engine in the trainer's dtype", safe=False, dtype=trainer.value)
    yield RULE.finding(audit, severity, SETTING, message, fix, CONFIRM, by=("model",))


RULE = Rule("dtype-auto-trap", Layer.INFERENCE_PATH, check, defaults=("dtype",))
