"""Judgements put together: the worst of several decides, and none is better than the share of the data it rests on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rlaudit.diagnosis.move import Change, Move
from rlaudit.layers import WORST_FIRST, Judgement, Verdict, judged_as
from rlaudit.severity import FailFor
from rlaudit.tokens.data_share import MOST_LEFT_OUT, DataShare

# The metrics by which layers are judged if engines are compared with each other.
SEMANTIC_METRIC = "mean_ratio_minus_one"
PATH_METRIC = "k2"
SETTLES = "fix what was left out (see the faults and what was not seen), then compare again"


def held(verdict: Verdict, *shares: DataShare) -> Verdict:
    """Return the verdict that such shares of the data support: nothing passes if too much was left out."""
    short = verdict.passes and not all(share.suffices for share in shares)
    return Verdict.INCONCLUSIVE if short else verdict


def supported(judgement: Judgement, figures: DataShare, causes: DataShare) -> Judgement:
    """Return the judgement with the share of the data that it rests on; no match if that does not suffice.

    figures: share of the table. causes: share of the sample in which causes are searched for. A mismatch stands, no
    matter what was left out.
    """
    if judgement.verdict is Verdict.NOT_TESTED:
        return judgement
    shares = {f"the figures use {figures}": figures, f"causes were looked for in {causes}": causes}
    evidence = (*judgement.evidence, *(line for line, share in shares.items() if not share.whole))
    verdict = held(judgement.verdict, figures, causes)
    if verdict is judgement.verdict:
        partial = verdict is Verdict.INCONCLUSIVE and not (figures.suffices and causes.suffices)
        return replace(judgement, evidence=evidence, next=SETTLES if partial else judgement.next)
    short = [line for line, share in shares.items() if not share.suffices]
    return judged_as(
        judgement.layer,
        verdict,
        f"{'; '.join(short)}. With more than {100 * MOST_LEFT_OUT:.0f} % left out nothing counts as a "
        f"match. Of what is left: {judgement.because}",
        evidence=evidence,
        falsifier=judgement.falsifier,
        following=SETTLES,
    )


def worst_layers(named: Sequence[tuple[str, Sequence[Judgement]]]) -> list[Judgement]:
    """Return the layers of the worst of several named comparisons: a later layer is read with its earlier ones.

    Worst is what goes wrong in the earliest layer. The verdicts of the others on each layer are added to its evidence.
    """
    name, worst = min(named, key=lambda entry: badness(entry[1]))
    if len(named) == 1:
        return list(worst)
    layers = []
    for place, layer in enumerate(worst):
        others = [f"{other}: {layers_of[place].verdict}" for other, layers_of in named if other != name]
        layers.append(replace(layer, because=f"{layer.because} ({name})", evidence=[*layer.evidence, *others]))
    return layers


def badness(layers: Sequence[Judgement]) -> list[int]:
    """Return what sorts several comparisons, the worst first."""
    return [WORST_FIRST.index(layer.verdict) for layer in layers]


def counted(layers: Sequence[Judgement], move: "Move | None", fail_for: FailFor) -> list[Verdict]:
    """Return the verdicts that an exit code is made of: of each layer, or of what the move does to it.

    What the move does to the objective is open while an earlier layer comes first, which decides nothing by itself.
    """
    if fail_for is FailFor.STATE:
        return [layer.verdict for layer in layers]
    if move is None:
        return [Verdict.INCONCLUSIVE]
    semantic, path, objective = (change.change for change in move.changes)
    changes = [semantic, path, *([] if objective is Change.UNKNOWN else [objective])]
    return [
        Verdict.MISMATCH if change.is_worse else Verdict.INCONCLUSIVE if change is Change.UNKNOWN else Verdict.MATCH
        for change in changes
    ]


def exit_code_of(verdicts: Iterable[Verdict], unfinished: bool, fails: bool, requires_match: bool = False) -> int:
    """Return 3 if the audit is not finished or the first layer that does not pass is no mismatch; 1 for a mismatch.

    Layers are judged in order: those after the first that does not pass are not required. fails: whether a mismatch
    makes the exit code 1. requires_match: whether 3 is returned if nothing was found in a layer that does not match.
    """
    if unfinished:
        return 3
    verdicts = list(verdicts)
    decisive = next((verdict for verdict in verdicts if not Verdict(verdict).passes), None)
    if decisive is None:
        return 3 if requires_match and Verdict.NOTHING_FOUND in verdicts else 0
    return int(fails) if decisive == Verdict.MISMATCH else 3
