"""VLLM_BATCH_INVARIANT is set, and this version or device does not run with it, or knows nothing of it.

What changed
    The variable exists from 0.11.1. From 0.12.0 to 0.19.1 the engine starts only with an attention backend that is
    known to be invariant. 0.20.0 asks the chosen backend instead. vLLM's table of variables lists it from 0.19.0 on.
    `--fail-on-environ-validation` (0.17.0 on) rejects it before (vllm/model_executor/layers/batch_invariant.py).

Why it matters
    Batch invariance is how one shows that batching is, or is not, the cause of a mismatch. Set on a version without
    it, it does nothing, and the conclusion "it was not batching" is drawn from a run that never had it.

Example
    Reported:

        to: 0.18.1
        environment: {VLLM_BATCH_INVARIANT: "1"}

    Use instead:

        engine: {attention_backend: FLASH_ATTN}

Safe to ignore when
    never, where the engine does not start.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor batch-invariance` measures whether a prompt's logprobs depend on its
    neighbours.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.batch_invariance import VARIABLE, asks_for_batch_invariance, attention_backend
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.batch_invariant_backends import accepted_backends
from rlaudit.vllm.milestones import BATCH_INVARIANCE, BATCH_INVARIANCE_IS_LISTED


def check(audit: Audit) -> Iterator[Finding]:
    """Report a release that is too old, a CPU, no backend, the wrong one, or a variable that is not registered."""
    if not asks_for_batch_invariance(audit.after):
        return
    version = audit.after.version
    if version < BATCH_INVARIANCE:
        message = f"{VARIABLE} is set, and vLLM {version} does not read it: 0.11.1 is the first release with it."
        yield _finding(audit, Severity.WARNING, message)
    elif audit.after.machine.platform == "cpu":
        message = f"{VARIABLE} is set, and vLLM {version} ends at start-up with it on a CPU. Unset it here."
        yield _finding(audit, Severity.ERROR, message)
    elif accepted_backends(version):
        yield from _without_its_backend(audit)
    if BATCH_INVARIANCE <= version < BATCH_INVARIANCE_IS_LISTED and _validates(audit):
        message = (
            f"vLLM {version} does not list {VARIABLE} as a variable, so fail_on_environ_validation rejects "
            "it. Drop the flag, or move to 0.19.0."
        )
        yield _finding(audit, Severity.ERROR, message)


def _without_its_backend(audit: Audit) -> Iterator[Finding]:
    version, backend = audit.after.version, attention_backend(audit.after)
    accepted = accepted_backends(version)
    if isinstance(backend, Unknown):
        message = f"{VARIABLE} needs one of the attention backends {', '.join(accepted)}: {backend.reason}."
        yield _finding(audit, Severity.NOTE, message)
    elif backend is None:
        by_argument = audit.after.exists("attention_backend")
        how = "attention_backend" if by_argument else "VLLM_ATTENTION_BACKEND"
        message = (
            f"vLLM {version} does not start with {VARIABLE} unless an attention backend is set. Set {how}=FLASH_ATTN."
        )
        fix = audit.fix("Choose FLASH_ATTN", safe=False, attention_backend="FLASH_ATTN") if by_argument else None
        yield _finding(audit, Severity.ERROR, message, fix)
    elif str(backend).upper() not in accepted:
        message = f"vLLM {version} does not start with {VARIABLE} and {backend}; it accepts {', '.join(accepted)}."
        yield _finding(audit, Severity.ERROR, message)


def _validates(audit: Audit) -> bool:
    flag = audit.config.engine.get("fail_on_environ_validation")
    return flag is not None and flag.value is True


def _finding(audit: Audit, severity: Severity, message: str, fix: Fix | None = None) -> Finding:
    return RULE.finding(audit, severity, VARIABLE, message, fix, Trial(("batch-invariance",)))


RULE = Rule("batch-invariance-preconditions", Layer.INFERENCE_PATH, check)
