"""One side computes its output head in float32, and the other does not.

What changed
    Nothing in vLLM by itself. Trainers have a switch (TRL `cast_lm_head_to_fp32`), vLLM has another
    (`hf_overrides={"head_dtype": "float32"}` from 0.26.0 on, framework plug-ins before). With an upgrade, one of them
    comes or goes.

Why it matters
    With both heads in bfloat16 the two sides round alike, and part of the rounding cancels. With one in float32 nothing
    cancels. Fast-LLM's pull request 525 measures 0.040 nats (root mean square) with one side against 0.031 with both.
    NeMo-RL's 3936 finds one side alone worse than none.

Example
    Reported:

        to: 0.26.0
        engine: {dtype: bfloat16}
        trainer: {dtype: bfloat16, head_dtype: float32}

    Use instead:

        engine: {hf_overrides: {head_dtype: float32}}

Safe to ignore when
    The body's noise is far larger than a head's rounding (FP8 rollouts, mixture-of-experts models).

How to confirm
    `rlaudit ablate fp32-head`: factor `fp32-head` runs neither, rollout, trainer and both.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.head_dtype import rollout_head_dtype, trainer_head_dtype
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import HEAD_DTYPE

CONFIRM = Trial(("fp32-head",))
SETTING = "head_dtype"


def check(audit: Audit) -> Iterator[Finding]:
    """Report float32 on one side and a shorter dtype on the other."""
    rollout, trainer = rollout_head_dtype(audit.after), trainer_head_dtype(audit)
    engine_dtype = audit.after.resolution.given("dtype")
    head_is_raised = rollout == Dtype.FLOAT32 and Dtype.named(engine_dtype) is not Dtype.FLOAT32
    trainer_raises = isinstance(audit.config.facts.head_dtype, Dtype) and trainer is Dtype.FLOAT32
    if isinstance(rollout, Unknown):
        if trainer_raises:
            message = (
                "The trainer's head is float32. It is not known whether the rollout's head is float32 as well: "
                f"{rollout.reason}."
            )
            yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)
    elif trainer_raises and rollout != Dtype.FLOAT32:
        message = f"The trainer computes its head in float32, {engine_of(audit.after)} in {rollout}. {_remedy(audit)}"
        yield RULE.finding(audit, Severity.WARNING, SETTING, message, _fix(audit), CONFIRM)
    elif head_is_raised and trainer is None:
        message = (
            "The rollout's head is float32, and this file does not say in which dtype the trainer computes its head. "
            "It has to be float32, too."
        )
        yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)
    elif head_is_raised and trainer is not Dtype.FLOAT32:
        message = f"The rollout's head is float32 and the trainer's {trainer}. Use float32 on both sides or on none."
        yield RULE.finding(audit, Severity.WARNING, SETTING, message, confirm=CONFIRM)


def _remedy(audit: Audit) -> str:
    if audit.after.version >= HEAD_DTYPE:
        return 'Set hf_overrides={"head_dtype": "float32"}.'
    return (
        "vLLM can compute its head in float32 from 0.26.0 on. With older releases, use a plug-in that does so, or "
        "compute the trainer's head in bfloat16 as well."
    )


def _fix(audit: Audit) -> Fix | None:
    """Return a fix only if there are no other overrides to keep."""
    if audit.after.version < HEAD_DTYPE or audit.after.resolution.given("hf_overrides") is not None:
        return None
    return audit.fix("compute the rollout's head in float32", safe=False, hf_overrides={"head_dtype": "float32"})


RULE = Rule("one-sided-fp32-head", Layer.INFERENCE_PATH, check)
