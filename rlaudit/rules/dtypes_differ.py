"""Trainer and rollout engine run the model in different dtypes.

What changed
    Nothing by itself. `dtype=auto` and a framework's default are decided in other places than the trainer's precision,
    and an upgrade moves them apart. 0.9.1 casts float32 checkpoints to bfloat16, older releases to float16.

Why it matters
    float16 keeps 10 bits of mantissa, bfloat16 7: the same weights give logits that differ in every position.
    Where both sides agree, much of the rounding is shared. What is left is the least that every mismatch metric
    shows: no setting of caching or scheduling gets below it.

Example
    Reported:

        to: 0.18.1
        engine: {dtype: float16}
        trainer: {dtype: bfloat16, uses_rollout_logprobs: true}

    Use instead:

        engine: {dtype: bfloat16}

Safe to ignore when
    The trainer's dtype is that of its parameters, and its forward pass is autocast to the rollout's.

How to confirm
    `rlaudit ablate quick`: factor `dtype` with both values.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import restores
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report two dtypes that are both known."""
    rollout, trainer = Dtype.named(audit.after.value("dtype")), audit.config.facts.dtype
    if rollout is None or not isinstance(trainer, Dtype) or rollout is trainer:
        return
    if audit.config.facts.uses_rollout_logprobs is False:
        return
    # float32 is often the dtype of parameters alone, under autocast; two kinds of half precision never are.
    severity = Severity.NOTE if trainer is Dtype.FLOAT32 else Severity.WARNING
    message = f"The trainer runs in {trainer} and {engine_of(audit.after)} in {rollout}. Run both in one dtype."
    fix = audit.fix(f"run rollouts in {trainer}", restores(audit, "dtype", trainer), dtype=trainer.value)
    yield RULE.finding(audit, severity, "dtype", message, fix, Trial(("dtype",)))


RULE = Rule("dtypes-differ", Layer.INFERENCE_PATH, check)
