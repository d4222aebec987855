"""VLLM_USE_V1 asks for an engine that this version does not let one choose.

What changed
    Up to 0.10.2 `VLLM_USE_V1=0` ran V0 and `=1` insisted on V1. 0.11.0 has no V0: with 0 its engine refuses to
    start. From 0.11.1 the variable is not read at all.

Why it matters
    With 0 the config still says V0, and V1 runs: other logprobs (raw unless told otherwise), prefix caching on,
    another scheduler. This is the migration, and the config does not show it.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        environment: {VLLM_USE_V1: "0"}

    Use instead:

        environment: {VLLM_USE_V1: null}

Safe to ignore when
    a launcher shared with older releases sets it, and the V1 defaults were looked at.

How to confirm
    `rlaudit ablate v0-to-v1`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import UNKNOWN_VARIABLE_IS_LOGGED, VLLM_USE_V1_IS_NOT_READ
from rlaudit.vllm.resolution.engine import VARIABLE, has_v0

CONFIRM = Trial()


def check(audit: Audit) -> Iterator[Finding]:
    """Report the variable if the release has only one engine."""
    setting, version = audit.after.variable(VARIABLE), audit.after.version
    if setting is None or setting.value is None or has_v0(version):
        return
    where = setting.place
    if not setting.known:
        message = f"{VARIABLE} is not read by vLLM {version}, so its value here has no effect. Remove it."
        yield RULE.finding(audit, Severity.NOTE, VARIABLE, message, place=where)
    elif str(setting.value).lower() in ("0", "false"):
        if version < VLLM_USE_V1_IS_NOT_READ:
            message = (
                f"{VARIABLE}=0 requests V0, which vLLM {version} does not have, so vLLM refuses to start. "
                "Remove the variable."
            )
            yield RULE.finding(audit, Severity.ERROR, VARIABLE, message, confirm=CONFIRM)
        else:
            ran = audit.migrates and audit.before.is_v1 is False
            logged = version >= UNKNOWN_VARIABLE_IS_LOGGED
            message = (
                f"{VARIABLE}=0 requests V0, which vLLM {version} does not have. vLLM runs V1"
                f"{' and only logs an unknown variable' if logged else ' and logs no warning'}. "
                "Remove the variable, and check each default that V1 changes."
            )
            severity = Severity.ERROR if ran else Severity.WARNING
            yield RULE.finding(audit, severity, VARIABLE, message, confirm=CONFIRM)
    elif setting.place is not None and version >= VLLM_USE_V1_IS_NOT_READ:
        message = f"{VARIABLE}={setting.value} is not read by vLLM {version}, which has only V1. Remove it."
        yield RULE.finding(audit, Severity.NOTE, VARIABLE, message)


RULE = Rule("engine-variable-ignored", Layer.INFERENCE_PATH, check, already=Severity.NOTE)
