"""`head_dtype` in hf_overrides has no effect in this version.

What changed
    From 0.26.0 on, vLLM computes the head of a text model in the dtype that `hf_overrides={"head_dtype": ...}` names.
    0.10.2 documents it and does not use it. 0.11.0 to 0.25.1 warn once and take the model's dtype. Older releases do
    not know it.
    Source: ModelConfig.head_dtype, vllm/config/__init__.py (0.10.2:1772), vllm/config/model.py (0.11.0:1462),
    vllm/model_executor/layers/logits_processor.py (0.26.0:105), vLLM pull request 48390.

Why it matters
    The config says float32 and the head runs in bfloat16. With a trainer whose head is float32 that is the one-sided
    arrangement, which can be worse than bfloat16 on both sides.

Example
    Reported:

        to: 0.18.1
        engine: {hf_overrides: {head_dtype: float32}}

    Use instead:

        to: 0.26.0

Safe to ignore when
    A plug-in of yours computes the head in float32 anyway.

How to confirm
    `rlaudit ablate fp32-head`: factor `fp32-head` reads each side's precision off the lattice of its logprobs.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.head_dtype import requested_head_dtype, rollout_head_dtype
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import HEAD_DTYPE

SETTING = "hf_overrides"
CONFIRM = Trial(("fp32-head",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report a requested head dtype that the release ignores, or honours from this migration on."""
    requested = requested_head_dtype(audit.after)
    if requested is None or audit.after.value("runner") == "pooling":
        return
    if audit.after.version < HEAD_DTYPE:
        if rollout_head_dtype(audit.after) == requested:
            return  # A plug-in sets it, or the whole model has that dtype.
        message = f"{engine_of(audit.after)} ignores head_dtype={requested} in hf_overrides: the head runs in the"
        message += " model's dtype. 0.26.0 is the first release that applies it to text generation."
        yield RULE.finding(audit, Severity.ERROR, SETTING, message, confirm=CONFIRM)
    elif audit.crosses(HEAD_DTYPE) and rollout_head_dtype(audit.before) != requested:
        ignored = f"{engine_of(audit.before)} ignored head_dtype={requested} in hf_overrides"
        message = f"{ignored}, and {engine_of(audit.after)} applies it. So the engine's logprobs change: they come "
        message += f"closer to a trainer with a {requested} head, and farther from any other trainer."
        yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)


RULE = Rule("head-dtype-ignored", Layer.INFERENCE_PATH, check)
