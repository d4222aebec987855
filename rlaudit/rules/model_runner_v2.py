"""The migration crosses the switch to Model Runner V2, which replaces how batches are built and sampled.

What changed
    Model Runner V2 is a choice from 0.12.0 on. It is the default from 0.22.0 for dense Qwen3, from 0.23.0 for Llama and
    Mistral, from 0.24.0 for quantised and some mixture models. From 0.25.0 it runs every dense generation model, from
    0.29.0 everything that it supports (use_v2_model_runner in vllm/config/vllm.py of each).

Why it matters
    It is the second change of engine after V0 to V1: input preparation, sampling kernels and penalties are new code.
    The same seed draws other tokens, and logprobs move by rounding. A feature that it lacks keeps the old runner, so
    that one flag more or less decides which of them runs.

Example
    Reported:

        from: 0.21.0
        to: 0.32.0

    Use instead:

        environment: {VLLM_USE_V2_MODEL_RUNNER: "0"}

Safe to ignore when
    a comparison of both versions shows no mismatch with the new runner.

How to confirm
    `rlaudit ablate v1-to-latest`, on a GPU: without Triton, as on a CPU, the old runner is used.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import SECOND_RUNNER

RUNNER, VARIABLE = "model_runner", "VLLM_USE_V2_MODEL_RUNNER"
CONFIRM = Trial(look="this needs a GPU")


def check(audit: Audit) -> Iterator[Finding]:
    """Report another runner after than before, for certain or depending on the model."""
    crossed = [first for first in SECOND_RUNNER if audit.crosses(first)]
    before, after = audit.before.value(RUNNER), audit.after.value(RUNNER)
    if not crossed or audit.after.variable(VARIABLE) is not None or before == "V2" or after == "V1":
        return
    between = f"between {audit.before.version} and {audit.after.version}"
    which = f"From {crossed[-1]} on, vLLM runs {SECOND_RUNNER[crossed[-1]]} on Model Runner V2"
    which += ", and nothing here pins the runner"
    advice = f"Compare both releases, or keep today's runner with {VARIABLE}=0"
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        reason = next(value.reason for value in (after, before) if isinstance(value, Unknown))
        message = (
            f"{which}. It is not known whether that changes sampling and batch building {between}: {reason}. {advice}."
        )
        yield RULE.finding(audit, Severity.NOTE, VARIABLE, message, confirm=CONFIRM)
    else:
        because = audit.after.engine(RUNNER).note
        message = f"{which}. Sampling and batch building change {between}, since {because}. {advice}."
        yield RULE.finding(audit, Severity.WARNING, VARIABLE, message, confirm=CONFIRM, sets={VARIABLE: "0"})


RULE = Rule("model-runner-v2", Layer.INFERENCE_PATH, check)
