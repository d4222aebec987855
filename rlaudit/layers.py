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
    """What was found of a layer. Unknown never becomes fine.

    match          what matters would have shown, and did not;
    nothing found  the same up to limits of detection that the report states (`meaning/limits.py`);
    inconclusive   too little data, or evidence that a few prompts decide.
    """

    MATCH = "match"
    NOTHING_FOUND = "nothing found"
    MISMATCH = "mismatch"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"

    @property
    def passes(self) -> bool:
        """Whether the next layer is judged, and a gate lets it pass."""
        return self in (Verdict.MATCH, Verdict.NOTHING_FOUND)


# A mismatch anywhere is a mismatch, and a layer that was not examined never becomes fine.
WORST_FIRST = (Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED, Verdict.NOTHING_FOUND, Verdict.MATCH)


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
    # What fits a mismatch that is not explained, or the rest of one: none of these was told from the others.
    fits: Sequence[str] | None = None


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
    fits: Sequence[str] = (),
) -> Judgement:
    """Return the judgement of a layer. words: the cause as it is shown, if not by its names. following: the next step.
    fits: what fits and was not told apart.
    """
    cause = words or " and ".join(causes) or None
    return Judgement(layer, verdict, cause, causes, because, evidence, falsifier, following, fits or None)


def untested(layer: Layer, because: str, following: str = "") -> Judgement:
    """Return the judgement of a layer that was not looked at."""
    return judged_as(layer, Verdict.NOT_TESTED, because, following=following)
