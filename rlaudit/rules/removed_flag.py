"""A flag or engine argument is set that this vLLM version does not have.

What changed
    From 0.8.5 to 0.18.1 vLLM lost 29 engine arguments and gained over a hundred; some flags of the server went with
    them. The command line rejects an unknown flag, `LLM(...)` an unknown argument.

Why it matters
    The engine does not start, which you notice at once. The damage that you do not notice comes later: the flag is
    deleted to start the engine, and its replacement is never looked for.

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

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Setting
from rlaudit.severity import Severity
from rlaudit.text.did_you_mean import VERY_NEAR, did_you_mean
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.removed import DONE_ANYWAY, Removed, removed

DROPPED_BY_LLM = {"swap_space"}  # LLM(...) warns and goes on


def check(audit: Audit) -> Iterator[Finding]:
    """Report every argument that the catalogue of the new version lacks: written, or passed on by the framework."""
    for name, setting in audit.config.engine.items():
        if setting.value is None or name == "model" or _accepts(audit.after.catalogue, name):
            continue
        version = audit.after.version
        if setting.place is None:
            if setting.known and _accepts(audit.before.catalogue, name):
                yield _of_the_framework(audit, setting)
            continue
        removal = removed("engine", name, version) or removed("flag", name.replace("_", "-"), version)
        first = lifetime("engine", name) or lifetime("frontend", name)
        if removal is not None:
            message = f"vLLM {version} has no {name}: {removal.effect}. {_advice(removal, setting)}"
            kept = audit.config.offline and name in DROPPED_BY_LLM
            severity = Severity.WARNING if kept else Severity.ERROR
            yield RULE.finding(audit, severity, name, message.strip(), _fix(audit, removal, setting))
        elif first is not None and first[0] > version:
            message = (
                f"vLLM {version} has no {name}, which came with {first[0]}. Leave it out, or move to that release."
            )
            yield RULE.finding(audit, Severity.ERROR, name, message)
        elif _accepts(audit.before.catalogue, name):
            message = (
                f"vLLM {version} has no {name}, while {audit.before.version} has it. The engine does not start with it."
            )
            yield RULE.finding(audit, Severity.ERROR, name, message)
        else:
            meant = did_you_mean(name, audit.after.catalogue.engine, cutoff=VERY_NEAR)
            message = f"No vLLM release known here has an engine argument {name}{f'; {meant}' if meant else '.'}"
            yield RULE.finding(audit, Severity.WARNING, name, message)


def _of_the_framework(audit: Audit, setting: Setting) -> Finding:
    name, version = setting.name, audit.after.version
    message = (
        f"vLLM {version} has no {name}, and {audit.config.framework} passes it on ({setting.note}). The engine "
        "does not start. Move the framework with vLLM, or take the line out of it."
    )
    severity = Severity.WARNING if audit.config.offline and name in DROPPED_BY_LLM else Severity.ERROR
    return RULE.finding(audit, severity, name, message)


def _accepts(catalogue: Catalogue, name: str) -> bool:
    return name in catalogue.engine or name in catalogue.frontend or name in catalogue.cli.values()


def _advice(removal: Removed, setting: Setting) -> str:
    """Return what to write instead; a switch that was written as off, its default, is left out."""
    declared = Catalogue.at(removal.last).engine.get(removal.name)
    was_off = declared is not None and declared.default in (False, None)
    is_off = removal.replacement is None and setting.value is False
    return "It was off by default: leave it out." if is_off and was_off else removal.instead


def _why_it_changes_nothing(audit: Audit, removal: Removed, setting: Setting) -> str:
    """Return the end of the fix's sentence if removing the argument changes nothing; empty if it may."""
    if not setting.known:
        return ""
    if any(setting.value == value for value in DONE_ANYWAY.get(removal.name, ())):
        return f": vLLM {audit.after.version} does what {setting.value!s} asks for by itself"
    declared = audit.before.catalogue.engine.get(removal.name)
    if declared is not None and setting.value is not None and declared.default == setting.value:
        return f": {setting.value!s} is the default of vLLM {audit.before.version}, as if it was not written"
    return ""


def _fix(audit: Audit, removal: Removed, setting: Setting) -> Fix | None:
    """Return the edits that put the replacement in the argument's place, if it means exactly the same.

    The argument is only removed if the replacement would write a default, or if there is none. The latter is safe only
    if the argument changed nothing.
    """
    name = setting.name
    if removal.replacement is None:
        why = _why_it_changes_nothing(audit, removal, setting)
        return audit.fix(f"Remove {name}{why}", bool(why), **{name: None})
    if not setting.known or removal.replacement[0] in audit.config.engine:
        return None
    new, translate = removal.replacement
    declared = audit.after.catalogue.engine.get(new)
    if declared is not None and declared.default is not None and declared.default == translate(setting.value):
        return audit.fix(f"Remove {name}: {new} is {declared.default} by default", True, **{name: None})
    return audit.fix(f"Write {new} instead of {name}", True, **{name: None, new: translate(setting.value)})


RULE = Rule("removed-flag", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
