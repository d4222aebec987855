"""A setting for vLLM is written and has no effect: misspelt, not passed on, or overruled by the framework's code.

What changed
    Nothing moved; the setting never worked. Some frameworks copy extra keys onto the engine's arguments without
    checking that the engine has them. Some pass only the keys they know, some set a value in code afterwards.

Why it matters
    Experiments are read by their configs. A key without effect makes two equal runs look different, or a fix that
    was never applied look useless.

Example
    Reported:

        to: 0.18.1
        lost:
          - name: enable_prefx_caching
            written: false
            loss: unknown key
            reason: the framework sets it on a namespace that vLLM does not read

    Use instead:

        lost: null
        engine: {enable_prefix_caching: false}

Safe to ignore when
    the value that runs is the one that you want.

How to confirm
    Look for the setting in "non-default args" of the engine's start-up log.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Loss, Lost
from rlaudit.severity import Severity
from rlaudit.text.did_you_mean import VERY_NEAR, did_you_mean
from rlaudit.unknown import Unknown

HOW = {
    Loss.UNKNOWN_KEY: "does not reach the engine",
    Loss.REFUSED: "stops the start",
    Loss.NOT_PASSED: "is not passed on to the engine",
    Loss.OVERRULED: "is replaced by the framework",
}
CONFIRM = '"non-default args" in the engine\'s start-up log'


def check(audit: Audit) -> Iterator[Finding]:
    """Report every lost key but a dropped false."""
    for lost in audit.config.lost:
        if lost.loss not in HOW:
            continue
        severity, effect = _effect(audit, lost)
        # The file's own name: vllm_device, which would be vLLM's device.
        name = lost.place.setting.rpartition(".")[2] or lost.name
        written = name if lost.written in (None, "") else f"{name}={lost.written}"
        message = f"{written} {HOW[lost.loss]}: {lost.reason}{effect}{'' if effect.endswith('?') else '.'}"
        yield RULE.finding(audit, severity, lost.name, message, confirm=CONFIRM, place=lost.place)


def _effect(audit: Audit, lost: Lost) -> tuple[Severity, str]:  # noqa: PLR0911 - one for each thing that may run
    """Judge a lost key by what runs in its place. A key that neither side knows is a mistake."""
    if lost.loss is Loss.REFUSED and _is_new(audit, lost):
        return (Severity.ERROR if lost.certain else Severity.WARNING), _guess(audit, lost)
    if not audit.after.exists(lost.name):
        if lost.loss not in (Loss.UNKNOWN_KEY, Loss.REFUSED):
            return Severity.NOTE, f". vLLM {audit.after.version} has no such argument"
        return Severity.WARNING, _guess(audit, lost)
    if lost.loss is Loss.REFUSED:
        return Severity.WARNING, ""
    runs = audit.after.value(lost.name)
    if isinstance(runs, Unknown):
        return Severity.NOTE, f". It is not known with which {lost.name} the engine runs: {runs.reason}"
    if runs == lost.written:
        return Severity.NOTE, ". The engine runs with the same value anyway"
    # A framework overrules on purpose; a key that reaches nothing is a mistake.
    severity = Severity.NOTE if lost.loss is Loss.OVERRULED else Severity.WARNING
    return severity, f". vLLM {audit.after.version} runs with {lost.name}={runs}"


def _is_new(audit: Audit, lost: Lost) -> bool:
    """Return whether the release before the migration starts with the key."""
    before = audit.before.config.lost if audit.migrates else ()
    return not any(other.name == lost.name and other.loss is Loss.REFUSED for other in before)


def _guess(audit: Audit, lost: Lost) -> str:
    arguments = audit.after.catalogue.engine
    meant = "" if lost.name in arguments else did_you_mean(lost.name, arguments, cutoff=VERY_NEAR)
    return f". {meant[0].upper()}{meant[1:]}" if meant else ""


RULE = Rule("unknown-key-ignored", Layer.INFERENCE_PATH, check)
