"""SkyRL: the arguments of its CI's `get_summary.py --asserts`, which compares the last step that a run logged to W&B.

Source: ci/get_summary.py of SkyRL (`METRIC OPERATOR LIMIT`, compared with the run's summary).
"""

import shlex
from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import Part
from rlaudit.report.rendering.export import GateExport, gates_of, learned_from

if TYPE_CHECKING:
    from rlaudit.curves.curve import Run
    from rlaudit.curves.learned_gates import GateSet


def write(gates: "GateSet", new: "Run | None") -> str:
    """Return the option, an assert a line."""
    asserts = [
        shlex.quote(f"{gate.metric} {sign} {limit:g}")
        for gate in gates_of(gates, Part.LAST)
        for sign, limit in (("<=", gate.high), (">=", gate.low))
        if limit is not None
    ]
    lines = " \\\n".join(f"  {text}" for text in asserts)
    return f"# {learned_from(gates)} Of the last step, which is what get_summary.py reads.\n--asserts \\\n{lines}\n"


EXPORT = GateExport("skyrl", write)
