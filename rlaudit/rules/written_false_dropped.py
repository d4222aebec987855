"""A `false` is written, and it never reaches the engine, which runs with its own default.

What changed
    vLLM's default did not change: the false is lost on its way to vLLM. `vllm serve --config` drops every false up to
    0.27.1, and later every false under a key with underscores. Several frameworks build a command line and leave out
    settings that are false. That went unnoticed while vLLM's defaults were off. V1 turned many of them on.

Why it matters
    The config switches a setting off, and the engine runs with the setting on. Someone who looks for the cause of a
    mismatch reads the config, and rules out the very setting that causes it.

Example
    Reported:

        to: 0.18.1
        lost:
          - name: enable_prefix_caching
            written: false
            loss: false dropped
            reason: vllm serve --config drops a false

    Use instead:

        lost: null
        engine: {enable_prefix_caching: false}

Safe to ignore when
    the engine's own default is off, too; then this is a note. If both releases lose the false and run with true, the
    move changes nothing. If the line is also inherited from another file, this is then a warning.

How to confirm
    Look for the setting in "non-default args" of the engine's start-up log: a dropped false is missing there.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import one_key
from rlaudit.settings.rollout_config import Loss, Lost
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

CONFIRM = '"non-default args" in the engine\'s start-up log'
# Arguments that decide how logprobs are computed: their loss is an error, that of others a warning.
MOVES_LOGPROBS = {
    "enable_prefix_caching", "async_scheduling", "enable_chunked_prefill", "enforce_eager", "disable_cascade_attn",
    "enable_expert_parallel", "calculate_kv_scales",
}  # fmt: skip


def check(audit: Audit) -> Iterator[Finding]:
    """Report every dropped false, as severe as what runs in its place."""
    for lost in audit.config.lost:
        if lost.loss is not Loss.FALSE_DROPPED:
            continue
        runs = audit.after.value(lost.name)
        open_ = isinstance(runs, Unknown)
        reaches = "may not reach" if open_ else "never reaches"
        loss = f"{lost.name}={lost.written} {reaches} the engine"
        if isinstance(runs, Unknown):
            severity, effect = (
                Severity.WARNING,
                f"{loss}, so {lost.name} may be on in vLLM {audit.after.version}",
            )
        elif runs is True:
            severity = Severity.ERROR if lost.name in MOVES_LOGPROBS else Severity.WARNING
            effect = f"{loss}, so vLLM {audit.after.version} runs with {lost.name}=True"
            if _is_so_already(audit, lost):
                severity = Severity.WARNING if lost.place.path != audit.config.path else severity
        else:
            severity = Severity.NOTE
            effect = (
                f"{loss}, but vLLM {audit.after.version} runs with {lost.name}={runs} by itself: nothing is lost yet"
            )
        way_out = _way_out(audit, lost) if open_ or runs is True else ""
        message = f"{effect}: {lost.reason}.{way_out}"
        yield RULE.finding(audit, severity, lost.name, message, confirm=CONFIRM, place=lost.place)


def _way_out(audit: Audit, lost: Lost) -> str:
    """Return what to write instead, as the file of the framework spells it."""
    edits = audit.config.write(lost.name, False) or ()
    forms = [one_key(edit.replacement) for edit in edits if edit.start == edit.end and edit.replacement.strip()]
    return f" Write {forms[0]} instead." if forms else ""


def _is_so_already(audit: Audit, lost: Lost) -> bool:
    """Return whether the release before the migration loses the same false, and runs with true as well."""
    before = (other for other in audit.before.config.lost if other.loss is Loss.FALSE_DROPPED)
    same = any((other.name, other.place) == (lost.name, lost.place) for other in before)
    return audit.migrates and same and audit.before.value(lost.name) is True


RULE = Rule("written-false-dropped", Layer.INFERENCE_PATH, check)
