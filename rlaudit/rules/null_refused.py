"""An argument is written as None, which this vLLM version does not take for it.

What changed
    vLLM's config classes check their values since 0.9.1, and one argument after another stopped taking None. `seed`
    took None until 0.12 and is an integer since. Before, None was a false switch or the default.

Why it matters
    The engine does not start. pydantic names the class, not the line that passed None. Code that tries again, or goes
    on without an engine, hides even that.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {enforce_eager: null}

    Use instead:

        engine: {enforce_eager: false}

Safe to ignore when
    the code takes None out before it starts vLLM.

How to confirm
    Start the engine of the new version with the same arguments; the error names the field. Measured on 0.18.1: the
    model, cache, scheduler and parallel config refuse None for every argument whose annotation has none.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Origin
from rlaudit.severity import Severity
from rlaudit.vllm.catalogue import Declared

# Others are not built in every engine, or not from this argument alone.
CHECKED = tuple(f"vllm/config/{part}.py" for part in ("model", "cache", "scheduler", "parallel"))


def check(audit: Audit) -> Iterator[Finding]:
    """Report each written None that the new version's config classes refuse, as a note if it is a reference."""
    for name, setting in audit.config.engine.items():
        declared = audit.after.catalogue.engine.get(name)
        if setting.place is None or setting.value is not None or setting.written is not None:
            continue
        if setting.origin is Origin.FRAMEWORK:
            continue  # The framework hands on no None.
        if declared is None or not _refuses(declared):
            continue
        checks = f"vLLM {audit.after.version} needs {declared.kind} ({declared.line})"
        if setting.through:
            message = f"{name} is {setting.through}, which is null in this file, but {checks}."
            message += " The command that starts the job may fill in a value; null stops vLLM."
            yield RULE.finding(audit, Severity.NOTE, name, message)
            continue
        message = (
            f"{name} is None, but {checks}, so the engine does not start. Leave {name} out, or write what you mean."
        )
        yield RULE.finding(audit, Severity.ERROR, name, message)


def _refuses(declared: Declared) -> bool:
    if declared.default is None or not declared.line.startswith(CHECKED):
        return False
    return "None" not in declared.kind and "Optional" not in declared.kind


RULE = Rule("null-refused", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
