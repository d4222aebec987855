"""A line of the framework, or of the program itself, stops under this release of vLLM.

What changed
    Nothing in vLLM: a line of Python compares `vllm.__version__` and raises. Frameworks that patch vLLM name the
    releases that they know, and a copy of one beside a config knows no later ones.

Why it matters
    The job stops before any setting is read. The framework has to move with vLLM, or the line has to change with what
    it guards.

Example
    Reported:

        from: 0.10.2
        to: 0.18.1
        version_guards: [{line: 4, text: raise NotImplementedError}]
        at_from: {version_guards: null}

    Use instead:

        version_guards: null

Safe to ignore when
    nothing that the job runs gets to the line.

How to confirm
    Run the line with the new release installed: most are reached at the import.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.action import take
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report each line that stops under the release after the migration."""
    config, vllm = audit.config, str(audit.after.version)
    for guard in config.version_guards:
        message = (
            f"This line stops under vLLM {vllm}: `{guard.text}`. Change the code that it guards together with vLLM."
        )
        is_own = guard.place.path == config.path
        move = Action(ActionKind.CHANGE, "the version check") if is_own else take(config.framework, None, vllm)
        yield RULE.finding(audit, Severity.ERROR, "vllm", message, place=guard.place, action=move)


RULE = Rule("version-guard", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
