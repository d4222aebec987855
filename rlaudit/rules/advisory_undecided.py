"""Whether a known defect of the new release is met hangs on one thing that this file does not tell.

What changed
    The new release has defects that today's has not. Each needs several things together: an architecture, a GPU, a way
    of updating weights. `rlaudit list advisories --from X --to Y` names all that a move enters.

Why it matters
    All but one of those things hold here. The one that is left decides, and those who run the job know it.

Example
    Reported:

        from: 0.18.1
        to: 0.22.0
        model: an/unpublished-model
        engine: {enable_return_routed_experts: true}
        machine: {gpu: sm100, name: B200, memory_gib: 179.0}

    Use instead:

        engine: {enable_return_routed_experts: false}

Safe to ignore when
    what decides is known not to hold.

How to confirm
    Look up what decides; `rlaudit explain NAME` says for each how to see it in a run.
"""

from collections.abc import Iterator

from rlaudit.advisories import has_rule, known_advisories
from rlaudit.audit.audit import Audit
from rlaudit.audit.finding import Finding
from rlaudit.audit.rule import Rule
from rlaudit.layers import Layer
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report advisories with exactly one open fact, grouped by that fact."""
    by_reason: dict[str, list[str]] = {}
    settings: dict[str, str] = {}
    for name, advisory in known_advisories().items():
        if has_rule(name) or (audit.migrates and advisory.window.holds(audit.before.version)):
            continue
        undecided = advisory.undecided(audit.after) or ()
        open_facts = {(condition.about or condition.says, unknown.reason) for condition, unknown in undecided}
        if len(open_facts) == 1:
            [(_, reason)] = open_facts
            by_reason.setdefault(reason, []).append(name)
            settings.setdefault(reason, advisory.setting)
    for reason, names in by_reason.items():
        listed = ", ".join(names)
        defects = f"defect{'' if len(names) == 1 else 's'} {listed}"
        message = f"Whether vLLM {audit.after.version}'s {defects} can happen here is open: "
        message += f"{reason}. `rlaudit explain {names[0]}` says what to do."
        yield RULE.finding(audit, Severity.NOTE, settings[reason], message)


RULE = Rule("advisory-undecided", Layer.INFERENCE_PATH, check)
