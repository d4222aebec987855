"""The program asks an engine of vLLM for a method or attribute that this version does not give it.

What changed
    `LLM` lost set_tokenizer, the engines the parts that V0 had in the caller's process. In V1 the engine core is a
    process of its own: llm.llm_engine.model_executor, by which weights used to be loaded from outside, is there only
    with VLLM_ENABLE_V1_MULTIPROCESSING=0. What each release from 0.8.5 on has was read from its sources.

Why it matters
    AttributeError where the line runs, often at the first weight update, after the engine has started. Under a broad
    `except` that goes on without a word there is no error at all: rollouts keep the weights they began with.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        stops:
          - {where: "train.py:9", what: takes set_tokenizer of the LLM, certain: true, kind: attribute}

    Use instead:

        stops: null

Safe to ignore when
    the line is not reached with this release, or the program puts the attribute there itself.

How to confirm
    Run one weight update in an environment with the new vLLM.
"""

from collections.abc import Iterator

from rlaudit.configs.framework_source.engine_objects import IN_PROCESS
from rlaudit.configs.rollout_config import StopKind
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer


def check(audit: Audit) -> Iterator[Finding]:
    """Every attribute; one that only some ways through the code reach is a warning, and a note in a framework's
    source.
    """
    processes = audit.after.variable(IN_PROCESS)
    in_process = processes is not None and str(processes.value) == "0"
    for stop in (one for one in audit.config.stops if one.kind is StopKind.ATTRIBUTE):
        if stop.apart and in_process:
            continue
        otherwise = Severity.WARNING if stop.place is not None else Severity.NOTE
        severity = Severity.ERROR if stop.certain else otherwise
        message = (
            f"{stop.where} {stop.what}. AttributeError {'for certain' if stop.certain else 'where it is reached'}."
        )
        yield RULE.finding(audit, severity, stop.where, message, place=stop.place)


RULE = Rule("attribute-gone", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
