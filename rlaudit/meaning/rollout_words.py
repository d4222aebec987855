"""What is said of rollouts that no trainer has scored (`from_rollouts.py`). Nothing reads it back."""

from dataclasses import replace

from rlaudit.layers import Verdict
from rlaudit.meaning.from_siblings import Siblings
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, RolloutFigures, Said
from rlaudit.meaning.sibling_words import LOGGED, refuted_by_siblings, what_siblings_leave_open, would_have_been_seen
from rlaudit.meaning.words import hanging
from rlaudit.statistics.resample import FEWEST_SEQUENCES

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
