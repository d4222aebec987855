"""A flag or engine argument is set that this vLLM version does not have.

What changed
    From 0.8.5 to 0.18.1 vLLM lost 29 engine arguments and gained over a hundred; some flags of the server went with
    them. The command line rejects an unknown flag, `LLM(...)` an unknown argument.

Why it matters
    The engine does not start, which is at least loud. The quiet damage comes after: the flag is deleted to get it
    running, and what does the same today is never looked for.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {max_seq_len_to_capture: 8192}

    Use instead:

        engine: {max_seq_len_to_capture: null, max_cudagraph_capture_size: 512}

Safe to ignore when
    the framework drops the flag for this version before it starts vLLM.

How to confirm
    Start the engine of the new version with the same command; it names the flag.
"""

from collections.abc import Iterator

from rlaudit.audit.audit import Audit
from rlaudit.audit.finding import Finding, Fix
from rlaudit.audit.rule import Rule
from rlaudit.did_you_mean import VERY_NEAR, did_you_mean
from rlaudit.layers import Layer
from rlaudit.settings.rollout_config import Setting
from rlaudit.severity import Severity
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.removed import DONE_ANYWAY, Removed, removed

DROPPED_BY_LLM = {"swap_space"}  # LLM(...) warns and goes on


def check(audit: Audit) -> Iterator[Finding]:
    """Report everything written that the catalogue of the new version does not hold."""
    for name, said in audit.config.engine.items():
        if said.place is None or said.value is None or name == "model" or _has(audit.after.catalogue, name):
            continue
        version = audit.after.version
        gone = removed("engine", name, version) or removed("flag", name.replace("_", "-"), version)
        first = lifetime("engine", name) or lifetime("frontend", name)
        if gone is not None:
            message = f"vLLM {version} has no {name}: {gone.effect}. {_instead(gone, said)}"
            kept = audit.config.offline and name in DROPPED_BY_LLM
            severity = Severity.WARNING if kept else Severity.ERROR
            yield RULE.finding(audit, severity, name, message.strip(), _fix(audit, gone, said))
        elif first is not None and first[0] > version:
            message = f"vLLM {version} has no {name}: it came with {first[0]}. Leave it out, or move to that release."
            yield RULE.finding(audit, Severity.ERROR, name, message)
        elif _has(audit.before.catalogue, name):
            message = (
                f"vLLM {version} has no {name}, which {audit.before.version} has: the engine does not start with it."
            )
            yield RULE.finding(audit, Severity.ERROR, name, message)
        else:
            meant = did_you_mean(name, audit.after.catalogue.engine, cutoff=VERY_NEAR)
            message = f"No vLLM release known here has an engine argument {name}{f'; {meant}' if meant else '.'}"
            yield RULE.finding(audit, Severity.WARNING, name, message)


def _has(catalogue: Catalogue, name: str) -> bool:
    return name in catalogue.engine or name in catalogue.frontend or name in catalogue.cli.values()


def _instead(gone: Removed, said: Setting) -> str:
    """Return how a switch is turned on today; one that was written as off, its default, is left out."""
    declared = Catalogue.at(gone.last).engine.get(gone.name)
    if gone.replacement is None and said.value is False and declared is not None and declared.default in (False, None):
        return "It was off by default: leave it out."
    return gone.instead


def _why_it_changes_nothing(audit: Audit, gone: Removed, said: Setting) -> str:
    """Return the end of the fix's sentence if the new release does what the value asks for; "" if it may not."""
    if not said.known:
        return ""
    if any(said.value == value for value in DONE_ANYWAY.get(gone.name, ())):
        return f": vLLM {audit.after.version} does what {said.value!s} asks for by itself"
    declared = audit.before.catalogue.engine.get(gone.name)
    if declared is not None and said.value is not None and declared.default == said.value:
        return f": {said.value!s} is the default of vLLM {audit.before.version}, as if it was not written"
    return ""


def _fix(audit: Audit, gone: Removed, said: Setting) -> Fix | None:
    """Return the replacement, if one says exactly the same; None as value takes the old argument away.

    Only the removal if the replacement would say its default, or if nothing takes the argument's place: that starts the
    engine, and whether the argument did anything before is for the reader to know, unless its value asks for what is
    done without it.
    """
    if gone.replacement is None:
        why = _why_it_changes_nothing(audit, gone, said)
        return audit.fix(f"Take {said.name} away{why}", bool(why), **{said.name: None})
    if not said.known or gone.replacement[0] in audit.config.engine:
        return None
    new, translate = gone.replacement
    declared = audit.after.catalogue.engine.get(new)
    if declared is not None and declared.default is not None and declared.default == translate(said.value):
        return audit.fix(f"Take {said.name} away: {new} is {declared.default} by default", True, **{said.name: None})
    return audit.fix(f"Write {new} instead of {said.name}", True, **{said.name: None, new: translate(said.value)})


RULE = Rule("removed-flag", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
