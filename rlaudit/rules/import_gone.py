"""The program imports a module of vLLM, or a name in one, that this version does not have.

What changed
    vLLM's modules are no interface: they move with nearly every release. With V0 went vllm.worker and vllm.executor,
    with 0.11.1 vllm.utils became a package of many modules, and parameters for structured outputs have another name.
    What each release from 0.8.5 on has was read from its sources.

Why it matters
    ImportError where the line runs: when the program starts, or in the worker in the middle of the start. An import
    that a `try` catches, or that stands in the branch of another release, is not reported.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        stops:
          - {where: "train.py:3", what: imports from vllm.worker.worker, certain: true, kind: import}

    Use instead:

        stops: null

Safe to ignore when
    the file, or the function that imports it, is not used with this release.

How to confirm
    Import the file in an environment with the new vLLM.
"""

from collections.abc import Iterator

from rlaudit.configs.rollout_config import StopKind
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer


def check(audit: Audit) -> Iterator[Finding]:
    """Every import; one that only some ways through the code reach is a warning, and a note in a framework's source:
    which of its functions are called for a release, the framework may well know.
    """
    for stop in (one for one in audit.config.stops if one.kind is StopKind.IMPORT):
        otherwise = Severity.WARNING if stop.place is not None else Severity.NOTE
        severity = Severity.ERROR if stop.certain else otherwise
        message = f"{stop.where} {stop.what}. ImportError {'at once' if stop.certain else 'where it is reached'}."
        yield RULE.finding(audit, severity, stop.where, message, place=stop.place)


RULE = Rule("import-gone", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
