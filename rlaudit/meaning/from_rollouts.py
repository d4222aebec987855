"""The meaning of rollouts that no trainer has scored: report against sample, by samples of one prompt.

Token ids and one logprob a token decide whether the report is of what the tokens were drawn from. Where nothing but a
temperature of 1 was asked for, raw and processed logprobs are the same, so that a report that is off leaves something
out that nobody asked for.

Not covered: whether the trainer computes the same, of which there is nothing here.
"""

from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.from_logs import dishonest
from rlaudit.meaning.from_siblings import keeps_odds
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, Meaning, RolloutFigures
from rlaudit.meaning.rollout_words import said_of_rollouts
from rlaudit.statistics.resample import FEWEST_SEQUENCES


def meaning_of_rollouts(figures: RolloutFigures, asked: Semantics, trainer: Semantics) -> Meaning:
    """asked: what the engine was asked to sample from. trainer: what the trainer is taken to compute."""
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
