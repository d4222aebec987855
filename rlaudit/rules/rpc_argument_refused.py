"""The program hands `collective_rpc` something that this version does not send to an engine in a process of its own.

What changed
    vLLM 0.8.5 pickled what went from the program to its V1 engine. Since 0.9.0 only plain values, tensors and arrays
    are sent (vllm/v1/serial_utils.py); functions and `torch.dtype` are refused unless VLLM_ALLOW_INSECURE_SERIALIZATION
    is 1. V0 ran in the program's own process and sent nothing.

Why it matters
    Weight updates written by hand pass each parameter's name, dtype and shape: the first update after the migration
    ends in a TypeError, and one that is caught leaves the rollouts on the first weights for the whole training.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        stops:
          - {where: "train.py:30", what: "hands p.dtype to collective_rpc", certain: true, kind: unsent}

    Use instead:

        stops: null

Safe to ignore when
    the variable is set where the job is started, or the engine runs in the program's own process
    (VLLM_ENABLE_V1_MULTIPROCESSING=0 with `LLM`).

How to confirm
    Run one weight update with the new vLLM; the error names the variable.
"""

from collections.abc import Iterator

from rlaudit.configs.framework_source.engine_objects import IN_PROCESS
from rlaudit.configs.framework_source.unsent_arguments import SWITCH
from rlaudit.configs.rollout_config import StopKind
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer


def check(audit: Audit) -> Iterator[Finding]:
    """Every such call of a V1 engine; one whose value, or whose variable, the file does not tell is a note."""
    if audit.after.is_v1 is False or _on(audit, SWITCH) or (audit.config.offline and _is(audit, IN_PROCESS, "0")):
        return
    allowed = audit.after.variable(SWITCH)
    open_ = allowed is not None and not allowed.known
    for stop in (one for one in audit.config.stops if one.kind is StopKind.UNSENT):
        otherwise = Severity.NOTE if stop.doubt or open_ else Severity.WARNING
        severity = Severity.ERROR if stop.certain and not open_ else otherwise
        message = f"{stop.where} {stop.what}. Pass a text in its place, or set the variable in every process."
        yield RULE.finding(audit, severity, stop.where, message, place=stop.place)


def _is(audit: Audit, variable: str, value: str) -> bool:
    setting = audit.after.variable(variable)
    return setting is not None and str(setting.value) == value


def _on(audit: Audit, variable: str) -> bool:
    setting = audit.after.variable(variable)
    return setting is not None and setting.known and not _is(audit, variable, "0")


RULE = Rule("rpc-argument-refused", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
