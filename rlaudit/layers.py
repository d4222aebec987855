"""The three layers, in the order in which they must be judged, and the verdicts on one.

semantic        the returned logprobs mean something else than the trainer assumes;
inference path  same meaning, other execution;
objective       what remains is for the RL objective to correct.

A layer is judged only when the one before it is clean: correcting the objective first hides a broken backend.
"""

from enum import StrEnum


class Layer(StrEnum):
    """Where a mismatch lives. The order of the members is the order of judgement."""

    SEMANTIC = "semantic"
    INFERENCE_PATH = "inference path"
    OBJECTIVE = "objective"


class Verdict(StrEnum):
    """Three values, and a fourth for what was not looked at. Unknown never becomes fine."""

    MATCH = "match"
    MISMATCH = "mismatch"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"


# A mismatch anywhere is a mismatch, and what was not seen never becomes fine.
WORST_FIRST = (Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED, Verdict.MATCH)
