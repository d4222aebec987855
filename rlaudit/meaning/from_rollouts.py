"""The meaning of rollouts that no trainer has scored: report against sample, by samples of one prompt.

Token ids and one logprob a token decide whether the report is of what the tokens were drawn from. If nothing but a
temperature of 1 was requested, raw and processed logprobs are the same; a report that is off then leaves something out
that was not requested.

Not covered: whether the trainer computes the same: it computed nothing here.
"""

from dataclasses import replace

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.from_logs import dishonest
from rlaudit.meaning.from_siblings import Siblings, keeps_odds
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, Meaning, RolloutFigures, Said
from rlaudit.meaning.sibling_words import LOGGED, refuted_by_siblings, what_siblings_leave_open, would_have_been_seen
from rlaudit.meaning.words import hanging
from rlaudit.statistics.resample import FEWEST_SEQUENCES


def meaning_of_rollouts(figures: RolloutFigures, asked: Semantics, trainer: Semantics) -> Meaning:
    """Judge the report. asked: what the engine was asked to sample from. trainer: what the trainer should compute."""
    kind = _kind(figures, asked)
    return Meaning(kind, trainer, trainer, trainer, asked, trainer, figures, said_of_rollouts(kind, figures))


def _kind(figures: RolloutFigures, asked: Semantics) -> Kind:
    siblings = figures.siblings
    report = siblings.report
    assert report is not None
    if siblings.off(report):
        if asked != RAW:
            return dishonest(asked, sharper=report.step.value > 0)
        return Kind.HIDDEN_FILTER if keeps_odds(report) else Kind.HIDDEN_SAMPLING
    if siblings.leans(report):
        return Kind.HANGING
    if figures.tokens < FEWEST_TOKENS or figures.sequences < FEWEST_SEQUENCES:
        return Kind.FEW
    return Kind.AGREE if siblings.same(report) else Kind.UNTOLD


NOT_TOLD = "whether the trainer computes what is reported: the table has no trainer logprobs"
WITH_TRAINER = "give the trainer's table as second argument, or --score MODEL"


def said_of_rollouts(kind: Kind, figures: RolloutFigures) -> Said:
    """Everything that is said of a meaning by itself."""
    convicted = kind.verdict is Verdict.MISMATCH
    said = refuted_by_siblings(kind, figures.siblings) if convicted else _open_said(kind, figures)
    return replace(said, not_told=(NOT_TOLD,))


def _open_said(kind: Kind, figures: RolloutFigures) -> Said:
    size = f"{figures.tokens} tokens in {figures.sequences} sequences"
    match kind:
        case Kind.HANGING:
            return Said(None, hanging(("the agreement of samples of one prompt",)), next="more prompts")
        case Kind.FEW:
            few = f"{size} are too few to acquit (needed: {FEWEST_TOKENS} in {FEWEST_SEQUENCES})"
            return Said(None, f"nothing convicts, but {few}", next="more tokens")
        case Kind.AGREE:
            return Said(
                None,
                f"tokens were drawn from what is reported ({size}): {would_have_been_seen(figures.siblings)}",
                "another agreement of new samples of one prompt",
                WITH_TRAINER,
            )
        case _:
            return Said(
                None,
                f"{_leaning(figures.siblings)} ({size}){what_siblings_leave_open(figures.siblings)}",
                next=f"more prompts or samples of each; or {LOGGED}",
            )


def _leaning(siblings: Siblings) -> str:
    report = siblings.report
    if report is None or not siblings.whole or report.step.low <= 0.0 <= report.step.high:
        return "samples of one prompt do not refute what is reported, and do not confirm it closely either"
    sharper = "sharper" if report.step.value > 0 else "flatter"
    return f"samples of one prompt look {sharper} than is reported, and too few are seen to convict"
