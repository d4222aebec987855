"""The report of a run and gates that were learned from runs; its part is under the key `learned_gates`."""

from typing import TYPE_CHECKING

from rlaudit.curves.curve import Run
from rlaudit.curves.learned_gates import GateSet, Verdict, judge
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.learned_gates import LearnedGates
from rlaudit.rules.advisories import in_some_releases

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def document_of(gates: GateSet, run: Run | None, fail: bool) -> "Report":
    """Return the report of `rlaudit curves NEW --gates-from`. run: None if the gates were only learned.

    fail: whether a run outside a gate makes the exit code 1. A gate that could not be judged makes it 3.
    """
    judged = judge(gates, run) if run is not None else []
    verdicts = {gate.verdict for gate in judged}
    outside = Verdict.OUTSIDE in verdicts
    code = 3 if Verdict.UNKNOWN in verdicts and not outside else int(fail and outside)
    return {
        **new_report("curves", code, not_seen=_not_seen(gates, run)),
        "learned_gates": LearnedGates(
            name="" if run is None else run.name,
            what="" if run is None else run.sink,
            alpha=gates.alpha,
            confidence=gates.confidence,
            runs=gates.runs,
            gates=gates.gates,
            judged=judged,
            not_learned=gates.not_learned,
            notes=gates.notes,
            method=[
                f"a new run of the same stack exceeds any of these limits with a probability of {gates.alpha:g} at "
                f"most. This is {100 * gates.confidence:.0f} % sure",
                "limits are tolerance bounds of medians over steps, so that single spikes decide nothing",
                "assumed: the learning runs differ only in their seeds. The new run has the same recipe and the "
                "same steps, and differs only in the change that is judged",
            ],
        ),
    }


def _not_seen(gates: GateSet, run: Run | None) -> list[str]:
    lines = [f"{metric} has no gate: {why}" for metric, why in gates.not_learned.items()]
    return lines if run is None else [*lines, *in_some_releases(dict.fromkeys(run.curves))]
