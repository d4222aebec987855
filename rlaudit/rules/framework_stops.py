"""The framework, as its source or its pin has it, does not go with this vLLM version.

What changed
    Frameworks write down which vLLM they were made for: they raise for other releases, assert a least one, choose
    an engine by the version, or pass arguments that a later release took away. Where versions are compared as texts,
    every release from 0.10 on counts as older than 0.8. Where the source is not there, the release that the project
    pins (requirements, pyproject.toml, lock file, image) may be one that never ran with this vLLM.

Why it matters
    No setting of the config helps: the job stops at import or when the engine is built. Versions compared as texts
    are worse, as they take the code for old releases without a word.

Example
    Reported:

        to: 0.18.1
        stops: [{where: "engine.py:4", what: "raises for vLLM 0.18.1", certain: true}]

    Use instead:

        stops: null

Safe to ignore when
    the copy of the framework that was read is not the one that runs; `--framework-source` names another.

How to confirm
    Import the framework's engine module in an environment with the new vLLM; the traceback names the line.
"""

from collections.abc import Iterator

from rlaudit.configs.rollout_config import StopKind
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer


def check(audit: Audit) -> Iterator[Finding]:
    """Every line that was found; one that only some ways through the code reach is a warning."""
    for stop in (one for one in audit.config.stops if one.kind in {StopKind.CODE, StopKind.ORDER}):
        severity = Severity.ERROR if stop.certain else Severity.WARNING
        reached = "" if stop.certain else ", where it is reached"
        yield RULE.finding(audit, severity, stop.where, f"{stop.where} {stop.what}{reached}.")


RULE = Rule("framework-stops", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
