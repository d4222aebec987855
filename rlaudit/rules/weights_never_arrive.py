"""The program updates weights in a way that does not reach a V1 engine in its separate process.

What changed
    V0 ran in the program's own process. V1's engine core has one to itself: `llm.llm_engine.model_executor` is there
    only with VLLM_ENABLE_V1_MULTIPROCESSING=0, and since 0.9.0 functions and `torch.dtype` are not sent by
    `collective_rpc` (vllm/v1/serial_utils.py) unless VLLM_ALLOW_INSECURE_SERIALIZATION is 1.

Why it matters
    The first weight update raises an AttributeError or a TypeError. If an `except` swallows it, there is no error.
    Rollouts keep the weights they began with, and the policy drifts away from them for the whole training.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        offline: true
        lost_updates: [{line: 30, what: takes model_executor of llm.llm_engine, sends: false, passed_over_at: 33}]

    Use instead:

        lost_updates: null

Safe to ignore when
    The line is not reached with this release, or the variables are set where the job is started.

How to confirm
    Run one weight update with the new vLLM and compare a logprob of the same prompt before and after it.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import LostUpdate
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import NOTHING_IS_PICKLED

_PROCESS, _PICKLES = "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_ALLOW_INSECURE_SERIALIZATION"
# The executor for which `LLM` keeps the engine in the program's own process.
_LAUNCHER = "external_launcher"


def check(audit: Audit) -> Iterator[Finding]:
    """Report an error if the program goes on after the failed update, else a warning: its caller may."""
    executor = audit.after.value("distributed_executor_backend")
    in_process = _variable_is(audit, _PROCESS, "0") or executor == _LAUNCHER
    of_the_program = audit.config.offline or (audit.config.bare and not audit.config.needs_v1)
    if audit.after.is_v1 is False or (of_the_program and in_process):
        return
    is_open = of_the_program and isinstance(executor, Unknown)
    for line in audit.config.lost_updates:
        if line.sends and (audit.after.version < NOTHING_IS_PICKLED or _variable_is(audit, _PICKLES, "1")):
            continue
        severity = Severity.ERROR if line.passed_over_at and not is_open else Severity.WARNING
        unless = f" Only {_LAUNCHER}, and the executor is open, keeps it in the program's own process." * is_open
        action = Action(ActionKind.CHANGE, f"the weight update in line {line.place.line}")
        yield RULE.finding(audit, severity, line.what, _message(audit, line) + unless, place=line.place, action=action)


def _message(audit: Audit, line: LostUpdate) -> str:
    why = (
        f"is sent no such argument without {_PICKLES}=1"
        if line.sends
        else f"can be reached in this way only with {_PROCESS}=0"
    )
    raised = "a TypeError" if line.sends else "an AttributeError"
    passed = f"; the except in line {line.passed_over_at} ignores it, and rollouts keep their first weights"
    then = passed if line.passed_over_at else ""
    engine = f"the engine of vLLM {audit.after.version} runs in another process and {why}"
    return f"This line {line.what}: {engine}. The first update raises {raised}{then}."


def _variable_is(audit: Audit, variable: str, value: str) -> bool:
    setting = audit.after.variable(variable)
    return setting is not None and str(setting.value) == value


RULE = Rule("weights-never-arrive", Layer.INFERENCE_PATH, check)
