"""Whether V0 or V1 runs is decided by vLLM from other settings, and nothing in the config says which.

What changed
    From 0.8.5 to 0.10.2 both engines are in the package. Unless VLLM_USE_V1 is set, vLLM takes V1 if everything
    requested is supported, and otherwise V0, with a log line (0.8.5 vllm/engine/arg_utils.py:1292-1499). A device older
    than sm80, a scheduler option, a dtype or a start from another thread decides.

Why it matters
    Two machines, or two runs with one flag between them, run different engines with logprobs of different meaning. A
    baseline measured on "0.8.5" may then be one of either engine.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {scheduling_policy: priority}

    Use instead:

        environment: {VLLM_USE_V1: "0"}

Safe to ignore when
    The start-up log of the run that you compare with says which engine it was, and rlaudit says the same. Where
    another file starts the server, this is only a note: look there.

How to confirm
    Look for "Initializing a V0" or "V1 LLM engine" in the log of the version today. A recipe with factor
    `engine-version` at `0.8.5 V0` and at `0.8.5 V1` shows what the engine alone changes.
"""

from collections.abc import Iterator

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.resolution.engine import VARIABLE, has_v0

CONFIRM = 'the words "Initializing a V0" or "V1 LLM engine" in the log of a run'


def check(audit: Audit) -> Iterator[Finding]:
    """Report every side that has both engines and does not say which."""
    for side in (audit.before, audit.after) if audit.migrates else (audit.after,):
        if not has_v0(side.version) or side.variable(VARIABLE) is not None:
            continue
        runs = {None: "V0 or V1", False: "V0", True: "V1"}[side.is_v1]
        if isinstance(side.config.engine, Elsewhere):
            reason = side.config.engine.reason
            message = f"vLLM {side.version} has two engines, V0 and V1. It is not known which engine runs: {reason}."
            yield RULE.finding(audit, Severity.NOTE, VARIABLE, message, confirm=CONFIRM)
            continue
        engine = side.value("engine")
        why = engine.reason if isinstance(engine, Unknown) else side.resolution.why_engine
        message = (
            f"vLLM {side.version} has two engines, V0 and V1, and nothing here chooses one. {runs} runs: {why}. "
            f"To choose, set {VARIABLE}=1 (V1) or {VARIABLE}=0 (V0)."
        )
        # V1 is what a reader of the release notes expects; V0 by fallback, or neither for certain, is not. What runs
        # today is a fact about the baseline, which the migration leaves anyway.
        only_today = audit.migrates and side is audit.before
        severity = Severity.NOTE if side.is_v1 is True or only_today else Severity.WARNING
        yield RULE.finding(audit, severity, VARIABLE, message, confirm=CONFIRM)


RULE = Rule("engine-chosen-silently", Layer.INFERENCE_PATH, check)
