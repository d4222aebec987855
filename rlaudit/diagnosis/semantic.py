"""Layer 1: do the reported logprobs mean what the trainer assumes?

The verdict is that of a meaning (`rlaudit/meaning`), or, for a table, of a cause if a signature names one.
"""

from rlaudit.attribution.attribute import Attribution, because_of
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.meaning.meaning import LoggedFigures, Meaning, RolloutFigures
from rlaudit.meaning.sibling_words import evidence_of_siblings
from rlaudit.meaning.words import UNEXPLAINED, evidence_of_logs, ratio_line
from rlaudit.measurement.measure import Measurement

NEXT_OF_SCORES = {
    Verdict.MISMATCH: "give both sides the same sampling parameters and logprobs mode, then compare again",
    Verdict.INCONCLUSIVE: "more tokens",
}


def judge_meaning(meaning: Meaning, attribution: Attribution, ratio: Measurement) -> Judgement:
    """Judge the semantic layer of a comparison. ratio: mean ratio - 1 of all tokens."""
    figures, line = meaning.figures, (ratio_line(ratio),)
    named = [cause for cause in attribution.named if cause.layer is Layer.SEMANTIC]
    names = [cause.name for cause in named]
    logged = isinstance(figures, LoggedFigures)
    if logged and meaning.kind.dishonest:
        # The engine's own report does not fit the tokens: that comes first, no matter what the trainer computes.
        more = (f"seen as well, and explained by this: {', '.join(names)}",) if names else ()
        return judged(meaning, (*line, *more))
    if named:
        return judged_as(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            because_of(named),
            causes=tuple(names) if logged or meaning.said.cause is None else (meaning.said.cause,),
            evidence=line,
            falsifier=named[0].falsifier,
            following=named[0].next,
        )
    if isinstance(figures, LoggedFigures):
        return judged(meaning, evidence_of_logs(figures))
    return judged(meaning, line, NEXT_OF_SCORES.get(meaning.verdict, ""))


def judge_rollouts(meaning: Meaning) -> Judgement:
    """Judge the semantic layer of rollouts that no trainer has scored."""
    assert isinstance(meaning.figures, RolloutFigures)
    return judged(meaning, evidence_of_siblings(meaning.figures.siblings))


def judged(meaning: Meaning, evidence: tuple[str, ...], step: str = "") -> Judgement:
    """Return a meaning as a judgement. step: the next one, if it is not the meaning's own."""
    words, cause = meaning.said, meaning.said.cause or ""
    explained = cause and meaning.kind not in UNEXPLAINED
    return judged_as(
        Layer.SEMANTIC,
        meaning.verdict,
        words.because,
        causes=(cause,) if explained else (),
        evidence=evidence,
        falsifier=words.falsifier,
        following=step or words.next,
        unexplained="" if explained else cause,
    )
