"""prime-rl: the table that its pull requests show, the mismatch of each step beside the limit that no step may pass.

Source: docs/development.md of prime-rl, which asks for 20 steps below one limit. A curve of more steps is thinned to 20
for the table; the last line counts all of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import Part
from rlaudit.curves.logged_metric import Group
from rlaudit.curves.metric_names import known_metric
from rlaudit.errors import NotFinished
from rlaudit.report.figures import number
from rlaudit.report.rendering.export import GateExport, gates_of, learned_from
from rlaudit.report.rendering.markdown_escaped import escaped, table

if TYPE_CHECKING:
    from rlaudit.curves.curve import Run
    from rlaudit.curves.learned_gates import GateSet, LearnedGate

STEPS = 20


def write(gates: "GateSet", new: "Run | None") -> str:
    """Return a table for each mismatch that has an upper limit."""
    limited = [gate for gate in gates_of(gates, Part.EVERY) if gate.high is not None and _is_mismatch(gate)]
    # What prime-rl's own table has, if it is logged.
    chosen = [gate for gate in limited if gate.canonical == "k3"] or limited
    if not chosen:
        raise NotFinished("prime-rl's table is of a mismatch of logprobs, and these gates have none")
    parts = [part for gate in chosen for part in _parts(gate, new, gates)]
    return "\n\n".join([*parts, escaped(learned_from(gates))]) + "\n"


def _is_mismatch(gate: "LearnedGate") -> bool:
    known = known_metric(gate.metric)
    return known is not None and known.group is Group.LOGPROBS


def _parts(gate: "LearnedGate", new: "Run | None", gates: "GateSet") -> Iterator[str]:
    limit = f"{gate.high:g}"
    if new is None:
        rows = [[run, number(value), limit] for run, value in zip(gates.runs, gate.values, strict=False)]
        yield table(["run", f"{gate.metric}, highest step", "limit"], rows)
        return
    curve = new.curves.get(gate.metric)
    if curve is None:
        raise NotFinished(f"{new.name} has no {gate.metric}")
    steps = {
        step: value
        for step, value in zip(curve.steps.tolist(), curve.values.tolist(), strict=True)
        if gate.first_step <= step <= gate.last_step
    } | {step: float("inf") for step in curve.not_finite_steps if gate.first_step <= step <= gate.last_step}
    shown = sorted(steps)[:: -(-len(steps) // STEPS) or 1]
    rows = [
        [str(step), number(steps[step]), limit, "below" if gate.keeps(steps[step]) else "not below"] for step in shown
    ]
    yield table(["step", gate.metric, "limit", ""], rows)
    yield f"{sum(map(gate.keeps, steps.values()))} of {len(steps)} steps below {limit}."
    whole = next(other for other in gates.gates if other.metric == gate.metric and other.part is Part.WHOLE)
    yield f"A limit of every step lets today's spikes through. {whole.part.capitalize()}: " + (
        f"{number(whole.of(curve))}, limit {whole.high:g}."
    )


EXPORT = GateExport("prime-rl", write)
