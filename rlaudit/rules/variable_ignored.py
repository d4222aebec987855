"""An environment variable of vLLM is set that this version does not read any more.

What changed
    Variables come and go with the code that they switch. Nothing fails when one is gone. Up to 0.16.0 it is ignored in
    silence, from 0.17.0 on with "Unknown vLLM environment variable". With `--fail-on-environ-validation` the engine
    ends.

Why it matters
    What the variable chose is now vLLM's choice: a sampler, a kernel, a way of reducing. Some of these move
    logprobs.

Example
    Reported:

        from: 0.14.1
        to: 0.18.1
        environment: {VLLM_FLASH_ATTN_VERSION: "2"}

    Use instead:

        environment: {VLLM_FLASH_ATTN_VERSION: null}

Safe to ignore when
    the variable is set for an older release that shares the launcher.

How to confirm
    Look for "Unknown vLLM environment variable" in the engine's start-up log (0.17.0 on).
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.batch_invariance import BACKEND_VARIABLE
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Setting
from rlaudit.severity import Severity
from rlaudit.vllm.removed import removed

# Other rules report these.
ELSEWHERE = {"VLLM_USE_V1", BACKEND_VARIABLE, "VLLM_BATCH_INVARIANT"}
# Words of variables that choose a kernel or a numerical path.
MOVES_LOGPROBS = (
    "FLASH",
    "ATTN",
    "ATTENTION",
    "SAMPLER",
    "TRITON",
    "GEMM",
    "CUTLASS",
    "MARLIN",
    "ALLREDUCE",
    "FUSE",
    "FP8",
)
CONFIRM = 'the words "Unknown vLLM environment variable" in the start-up log'


def check(audit: Audit) -> Iterator[Finding]:
    """Report variables that the file sets and that the release no longer reads."""
    for name, setting in audit.config.environment.items():
        if name in ELSEWHERE or not name.startswith("VLLM_") or setting.place is None:
            continue
        if name in audit.after.catalogue.variables or not _was_there(audit, name):
            continue
        yield _finding(audit, name, setting)


def _was_there(audit: Audit, name: str) -> bool:
    return name in audit.before.catalogue.variables or removed("variable", name, audit.after.version) is not None


def _finding(audit: Audit, name: str, setting: Setting) -> Finding:
    removal = removed("variable", name, audit.after.version)
    instead = removal.instead if removal is not None else ""
    value = setting.value if setting.known else "..."
    message = f"{name}={value} is not read by vLLM {audit.after.version}. "
    message += instead or "Remove the variable, or look for its replacement."
    moves = any(word in name for word in MOVES_LOGPROBS)
    severity = Severity.WARNING if moves else Severity.NOTE
    return RULE.finding(audit, severity, name, message, confirm=CONFIRM)


RULE = Rule("variable-ignored", Layer.INFERENCE_PATH, check, already=Severity.NOTE)
