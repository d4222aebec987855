"""The three layers, in the order in which they must be judged, the verdicts on one, and a layer's judgement.

semantic        the returned logprobs mean something else than the trainer assumes;
inference path  same meaning, other execution;
objective       what remains is for the RL objective to correct.

A layer is judged only when the one before it is clean: correcting the objective first hides a broken backend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Layer(StrEnum):
    """Where a mismatch lives. The order of the members is the order of judgement."""

    SEMANTIC = "semantic"
    INFERENCE_PATH = "inference path"
    OBJECTIVE = "objective"


class Verdict(StrEnum):
    """Three values, and a fourth for what was not examined. Unknown never becomes fine."""

    MATCH = "match"
    MISMATCH = "mismatch"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"


# A mismatch anywhere is a mismatch, and a layer that was not examined never becomes fine.
WORST_FIRST = (Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED, Verdict.MATCH)


@dataclass(frozen=True)
class Judgement:
    """A verdict on one layer, with its reasons."""

    layer: Layer
    verdict: Verdict
    # All causes, for people.
    cause: str | None
    # Each by itself, none if a mismatch is unexplained. A cause is named only by an intervention that removes it or a
    # signature that identifies it.
    causes: Sequence[str]
    because: str
    evidence: Sequence[str]
    falsifier: str
    next: str


def judged_as(
    layer: Layer,
    verdict: Verdict,
    because: str,
    *,
    causes: Sequence[str] = (),
    words: str = "",
    evidence: Sequence[str] = (),
    falsifier: str = "",
    following: str = "",
) -> Judgement:
    """Return the judgement of a layer. words: the cause as it is shown, if not by its names. following: the next
    step.
    """
    cause = words or " and ".join(causes) or None
    return Judgement(layer, verdict, cause, causes, because, evidence, falsifier, following)


def untested(layer: Layer, because: str, following: str = "") -> Judgement:
    """Return the judgement of a layer that was not looked at."""
    return judged_as(layer, Verdict.NOT_TESTED, because, following=following)
