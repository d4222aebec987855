"""NeMo-RL: expressions of `tests/check_metrics.py`, over the JSON of a run's metrics by step.

Source: tests/check_metrics.py and tests/test_suites of NeMo-RL. An expression is cut at its first `<` or `>` to print
its value, so the last steps are named by a range.
"""

import json
import shlex
from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import END, SHORTEST_END, Part
from rlaudit.report.rendering.export import GateExport, gates_of, learned_from

if TYPE_CHECKING:
    from rlaudit.curves.curve import Run
    from rlaudit.curves.learned_gates import GateSet, LearnedGate


def write(gates: "GateSet", new: "Run | None") -> str:
    """Return the command, a check a line."""
    checks = [
        shlex.quote(f"{_median(gate)} {sign} {limit:g}")
        for gate in gates_of(gates, Part.WHOLE, Part.END)
        for sign, limit in (("<", gate.high), (">", gate.low))
        if limit is not None
    ]
    lines = " \\\n".join(f"  {text}" for text in checks)
    return f"# {learned_from(gates)}\nuv run tests/check_metrics.py $JSON_METRICS \\\n{lines}\n"


def _median(gate: "LearnedGate") -> str:
    data = f"data[{json.dumps(gate.metric)}]"
    if gate.part is Part.WHOLE:
        return f"median({data})"
    steps = gate.last_step - gate.first_step + 1
    first = gate.last_step + 1 - max(SHORTEST_END, round(END * steps))
    return f"median({{k: v for k, v in {data}.items() if int(k) in range({first}, {gate.last_step + 1})}})"


EXPORT = GateExport("nemo-rl", write)
