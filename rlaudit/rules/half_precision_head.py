"""Neither side computes its output head in float32, and the engine is about to change.

What changed
    Logits of a bfloat16 head carry 8 bits: near 20 they are 0.125 apart. V0 and V1 round them in other places,
    with other kernels around them.

Why it matters
    The published migration from 0.8.5 to 0.18.1 (PipelineRL, pull request 137) put logprobs and runtime defaults right
    first. It matched its V0 curves only with a float32 head on both sides, too. Rounding is a part of the mismatch that
    no flag of scheduling or caching removes.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {dtype: bfloat16}
        at_from: {environment: {VLLM_USE_V1: "0"}}
        trainer: {dtype: bfloat16, head_dtype: bfloat16, uses_rollout_logprobs: true}

    Use instead:

        trainer: {head_dtype: float32, rollout_head_dtype: float32}

Safe to ignore when
    The mismatch metric of the running setup is already where you want it.

How to confirm
    `rlaudit ablate fp32-head`, which runs float32 on neither, either and both sides: factor `fp32-head`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.head_dtype import requested_head_dtype, rollout_head_dtype, trainer_head_dtype
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import HEAD_DTYPE


def check(audit: Audit) -> Iterator[Finding]:
    """Report half precision in both heads across a change of engine."""
    if not audit.migrates or audit.config.facts.uses_rollout_logprobs is not True:
        return
    if not (audit.before.is_v1 is False and audit.after.is_v1):
        return
    rollout, trainer = rollout_head_dtype(audit.after), trainer_head_dtype(audit)
    if isinstance(rollout, Unknown) or Dtype.FLOAT32 in (rollout, trainer) or requested_head_dtype(audit.after):
        return  # one float32 head is one-sided-fp32-head's, a dtype that is requested in vain head-dtype-ignored's
    both = f"The rollout's head is in {rollout}"
    both += f", the trainer's in {trainer}" if trainer else ""
    native = '`hf_overrides={"head_dtype": "float32"}`'
    native = native if audit.after.version >= HEAD_DTYPE else f"a plug-in, or {native} from vLLM 0.26.0 on"
    message = (
        f"{both}. The published migration from V0 to V1 needed a float32 head on both sides, never on one. "
        f"In vLLM, {native} sets a float32 head; the trainer has a switch for it as well."
    )
    yield RULE.finding(audit, Severity.NOTE, "head_dtype", message, confirm=Trial(("fp32-head",)))


RULE = Rule("half-precision-head", Layer.INFERENCE_PATH, check)
