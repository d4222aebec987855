"""Whether a known defect of the new release is met hangs on one thing that this file does not tell.

What changed
    The new release has defects that today's has not. Each needs several things together: an architecture, a GPU, a way
    of updating weights. `rlaudit list advisories --from X --to Y` names all that a move enters.

Why it matters
    All but one of the defect's conditions hold here. The last one decides, and the people who run the job know it.

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
    Give what decides: `--model NAME`, `--framework NAME==VERSION`, or the file that has it. `rlaudit explain NAME` says
    for each how to see it in a run.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.advisories import has_rule, known_advisories
from rlaudit.rules.advisories.advisory import VLLM, Advisory
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report advisories that exactly one open fact leaves undecided, grouped by that fact."""
    by_fact: dict[str, list[Advisory]] = {}
    for advisory in known_advisories().values():
        is_old = audit.migrates and advisory.of == VLLM and advisory.in_release(audit.before) is True
        # What counts no more than this does is not worth a line.
        if is_old or has_rule(advisory.name) or advisory.severity is Severity.NOTE:
            continue
        undecided = advisory.undecided(audit.after) or ()
        if len({(condition.about or condition.says, unknown.fact) for condition, unknown in undecided}) == 1:
            by_fact.setdefault(undecided[0][1].fact, []).append(advisory)
    for fact, advisories in by_fact.items():
        names = [advisory.name for advisory in advisories]
        message = f"These known defects may occur here: {', '.join(names)} ({fact})."
        yield RULE.finding(audit, Severity.NOTE, names[0], message, confirm=f"rlaudit explain {names[0]}")


RULE = Rule("advisory-undecided", Layer.INFERENCE_PATH, check)
