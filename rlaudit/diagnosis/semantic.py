"""What is said of layer 1: do the reported logprobs mean what the trainer assumes? Nothing parses it.

The verdict is that of a meaning (`rlaudit/meaning`), or, for a table, of a cause if a signature names one.
"""

from rlaudit.attribution.attribute import Attribution, because_of
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.meaning.meaning import LoggedFigures, Meaning
from rlaudit.meaning.words import UNEXPLAINED, evidence_of_logs, ratio_line, said_of
from rlaudit.measurement.measure import Measurement

NEXT_OF_SCORES = {
    Verdict.MISMATCH: "give both sides the same sampling parameters and logprobs mode, then compare again",
    Verdict.INCONCLUSIVE: "more tokens",
}


def say_meaning(meaning: Meaning, attribution: Attribution | None, ratio: Measurement | None) -> Judgement:
    """Say what was found of a comparison. attribution: of its causes. ratio: mean ratio - 1 of all tokens.

    Both are None if no trainer has scored the tokens.
    """
    figures, line = meaning.figures, () if ratio is None else (ratio_line(ratio),)
    named = () if attribution is None else attribution.named_of(Layer.SEMANTIC)
    names = [cause.name for cause in named]
    logged = isinstance(figures, LoggedFigures)
    if logged and meaning.kind.dishonest and ratio is not None:
        # The engine's own report does not fit the tokens: that comes first, no matter what the trainer computes.
        more = (f"seen as well, and explained by this: {', '.join(names)}",) if names else ()
        return said_of_layer(meaning, (*line, *more))
    if named:
        cause = said_of(meaning).cause
        return judged_as(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            because_of(named),
            causes=tuple(names) if logged or cause is None else (cause,),
            evidence=line,
            falsifier=named[0].falsifier,
            following=named[0].next,
        )
    if isinstance(figures, LoggedFigures):
        return said_of_layer(meaning, evidence_of_logs(figures))
    return said_of_layer(meaning, line, NEXT_OF_SCORES.get(meaning.verdict, ""))


def said_of_layer(meaning: Meaning, evidence: tuple[str, ...], step: str = "") -> Judgement:
    """Return a meaning as a judgement. step: the next one, if it is not the meaning's own."""
    words = said_of(meaning)
    cause = words.cause or ""
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
