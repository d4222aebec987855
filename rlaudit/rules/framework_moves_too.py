"""The framework has to move together with vLLM: no release of it, or not the one pinned or copied here, runs with both.

What changed
    Each release of a framework runs with a few releases of vLLM. TRL up to 0.26 does not import with vLLM 0.12 or
    later, and TRL from 1.4 on does not with 0.8.5. verl up to 0.8 needs vLLM 0.12.0 at most, and 0.9.0 needs 0.18.0 at
    least.
    Source: imports and Requires-Dist of their released wheels.

Why it matters
    A pin of vLLM that moves alone stops the job, or is refused by pip. With the framework, its own defaults move, and
    what changes in training is blamed on vLLM.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        framework: trl
        releases: ["1.6", null]
        at_from: {releases: ["0.18", "0.24"]}

    Use instead:

        releases: ["0.18", null]

Safe to ignore when
    the framework is moved in the same step, and its changes were read.

How to confirm
    `pip install` both releases together, and start the job.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.action import take
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report a pin that does not run with the new vLLM, else a copy that is older, else two ranges that do not meet."""
    pin = audit.config.refused_pin
    before, after = audit.before.config.releases, audit.after.config.releases
    move = take(audit.config.framework, after, str(audit.after.version))
    if pin is not None:
        message = f"{pin.where} {pin.because}. Move this pin together with vLLM."
        yield RULE.finding(audit, Severity.ERROR, pin.where, message, action=move)
        return
    if after is None:
        return
    copy, needed = audit.config.copy, f"vLLM {audit.after.version} needs {after.oldest} or later ({after.because})"
    meet = before is None or before.newest is None or before.newest > after.oldest
    if copy is not None and copy.release is not None:
        # One that was adapted to a later vLLM than its release runs with is as new as that.
        is_adapted = before is not None and copy.release < before.oldest
        if copy.release >= after.oldest or (is_adapted and meet):
            return
        message = f"The copy in {copy.where} is of {copy.release}, but {needed}. Move its changes to that release."
    elif before is None or meet:
        return
    else:
        name = audit.config.framework.replace("_", "-")
        pinned = before.newest is not None and before.newest.is_devrelease
        today = f"{name} {before.oldest}" if pinned else f"{name} before {before.newest}"
        message = (
            f"vLLM {audit.before.version} runs with {today}, vLLM {audit.after.version} only with {name} "
            f"{after.oldest} or later. Upgrade vLLM and {name} together, and read the changelog of {name}. Source: "
            f"{after.because}."
        )
        if copy is not None:
            message += (
                f" The copy in {copy.where} has no release number. Start it to see whether it runs with this vLLM."
            )
    yield RULE.finding(audit, Severity.WARNING, "framework", message, action=move)


RULE = Rule("framework-moves-too", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
