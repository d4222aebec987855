"""VLLM_ATTENTION_BACKEND chooses the attention backend, and this version does not read it any more.

What changed
    0.13.0 brought `--attention-backend` and kept the variable for two releases; 0.15.0 removed it. Nothing fails:
    up to 0.16.0 it is ignored in silence, from 0.17.0 with the warning "Unknown vLLM environment variable".

Why it matters
    The engine runs the backend that it finds best for the device. Attention rounds differently in each backend, and
    a backend that was chosen for agreement with the trainer is replaced without a message.

Example
    Reported:

        from: 0.11.2
        to: 0.18.1
        environment: {VLLM_ATTENTION_BACKEND: FLASHINFER}

    Use instead:

        engine: {attention_backend: FLASHINFER}

Safe to ignore when
    the variable names the backend that the engine chooses anyway, FLASH_ATTN on sm80 and sm90.

How to confirm
    The backend is in the start-up log of both versions. `rlaudit ablate CONFIG --from A --to B --factor engine-version`
    measures all that moves.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.batch_invariance import BACKEND_VARIABLE, attention_backend
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import NO_BACKEND_VARIABLE
from rlaudit.vllm.renamed import renamed_value

ARGUMENT = "attention_backend"
STILL_THERE = {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "FLASHMLA", "TRITON_MLA", "FLASHINFER_MLA",
               "FLASH_ATTN_MLA", "CUTLASS_MLA", "TREE_ATTN"}  # fmt: skip


def check(audit: Audit) -> Iterator[Finding]:
    """Report the variable from 0.15.0 on, with no argument in its place."""
    variable = audit.after.variable(BACKEND_VARIABLE)
    if variable is None or variable.value in (None, "") or audit.after.version < NO_BACKEND_VARIABLE:
        return
    if attention_backend(audit.after) is not None:
        return
    wanted = renamed_value(ARGUMENT, str(variable.value)) if variable.known else None
    fix = None
    if wanted in STILL_THERE:
        fix = audit.fix("Ask for the backend by argument", safe=True, attention_backend=wanted)
    if wanted is None:
        severity = Severity.WARNING
    elif wanted == audit.after.value(ARGUMENT):
        severity = Severity.NOTE
    else:
        severity = Severity.ERROR if variable.place is not None else Severity.WARNING
    value = variable.value if variable.known else "..."
    message = (
        f"{BACKEND_VARIABLE}={value} has no effect on vLLM {audit.after.version}, which chooses the backend itself. "
        f"{_remedy(wanted)}"
    )
    confirm = Trial()
    yield RULE.finding(audit, severity, BACKEND_VARIABLE, message, fix, confirm)


def _remedy(wanted: str | None) -> str:
    if wanted is None or wanted in STILL_THERE:
        return f"Set {ARGUMENT} instead."
    return f"{ARGUMENT} accepts no backend of that name. Remove the variable, and compare what runs."


RULE = Rule("attention-backend-variable-ignored", Layer.INFERENCE_PATH, check, already=Severity.NOTE)
