"""Were the logits bfloat16 or float32? Their differences lie on a lattice, or not (`lattice.py`)."""

import numpy as np

from rlaudit.probe.checked import Check, Checked, unanswered
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server
from rlaudit.statistics.measurement.lattice import HeadPrecision, lattice_hit_rate

LISTED = 20


def ask(server: Server, seen: Observations) -> Checked:
    """Judge the alternatives that were listed with every parameter neutral."""
    del server
    rows_TK = np.full((len(seen.open), LISTED), np.nan)
    for row, observed in enumerate(seen.open):
        listed = observed.context.logprobs_K[:LISTED]
        rows_TK[row, : len(listed)] = listed
    if not len(rows_TK):
        return unanswered("no prompt of those tried has an open next token with this model")
    evidence = lattice_hit_rate(rows_TK, 1.0)
    if evidence.verdict is HeadPrecision.UNKNOWN:
        return unanswered(evidence.because)
    name = "bfloat16" if evidence.verdict is HeadPrecision.BF16 else "finer than bfloat16"
    return Checked(
        found=evidence.verdict is HeadPrecision.BF16,
        answer=f"the logits are {name}: {evidence.because}",
        figures={"share on the lattice": evidence.hit_rate or 0.0, "differences": float(evidence.differences)},
    )


CHECK = Check("head", "In which precision are the logits?", ask)
