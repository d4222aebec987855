"""The judgement of one layer: a verdict, the reason, the evidence, what would refute it, and the one next experiment.

Of several judgements the worst decides, and the others are named.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rlaudit.layers import WORST_FIRST, Layer, Verdict
from rlaudit.report.parts.diagnosis import Judged
from rlaudit.tokens.data_share import MOST_LEFT_OUT, DataShare

# By which metric a layer is judged where engines are held against each other.
SEMANTIC_METRIC = "mean_ratio_minus_one"
PATH_METRIC = "k2"
SETTLES = "mend what was left out (see the faults and what was not seen), then compare again"


@dataclass(frozen=True)
class Judgement:
    """One layer, judged.

    causes: named only by an intervention that removes one or a signature that identifies one. unexplained: what a
    mismatch without any is called.
    """

    layer: Layer
    verdict: Verdict
    because: str
    causes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    falsifier: str = ""
    next: str = ""
    unexplained: str = ""

    def as_report(self) -> Judged:
        """Return what is said of the layer, as reports have it."""
        return {
            "layer": self.layer,
            "verdict": self.verdict,
            "cause": self.cause,
            "causes": list(self.causes),
            "because": self.because,
            "evidence": list(self.evidence),
            "falsifier": self.falsifier,
            "next": self.next,
        }

    @property
    def cause(self) -> str | None:
        """All causes, for people."""
        return " and ".join(self.causes) or self.unexplained or None


def supported(judgement: Judgement, figures: DataShare, causes: DataShare) -> Judgement:
    """Return the judgement with the share of the data that it rests on; no match if that does not suffice.

    figures: share of the table. causes: share of the sample in which causes are looked for. A mismatch stands: what was
    found is there, beside anything that was left out.
    """
    if judgement.verdict is Verdict.NOT_TESTED:
        return judgement
    said = {f"rests on {figures}": figures, f"causes were looked for in {causes}": causes}
    evidence = (*judgement.evidence, *(line for line, share in said.items() if not share.whole))
    short = [line for line, share in said.items() if not share.suffices]
    if judgement.verdict is not Verdict.MATCH or not short:
        return replace(judgement, evidence=evidence)
    return Judgement(
        judgement.layer,
        Verdict.INCONCLUSIVE,
        f"{'; '.join(short)}. With more than {MOST_LEFT_OUT:.0%} left out nothing is said to match. Of what is left: "
        f"{judgement.because}",
        evidence=evidence,
        falsifier=judgement.falsifier,
        next=SETTLES,
    )


Layers = Sequence[Judged]


def worst_layers(named: Sequence[tuple[str, Layers]]) -> list[Judged]:
    """Return the layers of the worst of several named things: a later layer is read with its own earlier ones.

    Worst is what goes wrong in the earliest layer. What the others say of each layer is added to its evidence.
    """
    name, worst = min(named, key=lambda entry: [WORST_FIRST.index(layer["verdict"]) for layer in entry[1]])
    if len(named) == 1:
        return list(worst)
    layers: list[Judged] = []
    for place, layer in enumerate(worst):
        others = [f"{other}: {judged[place]['verdict']}" for other, judged in named if other != name]
        layers.append({**layer, "because": f"{layer['because']} ({name})", "evidence": [*layer["evidence"], *others]})
    return layers


def exit_code_of(verdicts: Iterable[Verdict], unfinished: bool, fails: bool) -> int:
    """3 where the audit is not finished or the first layer that does not match is not a mismatch; 1 for a mismatch.

    Layers are judged in order: those after the first that does not match are not required. fails: whether a mismatch
    makes the exit code 1.
    """
    if unfinished:
        return 3
    decisive = next((verdict for verdict in verdicts if verdict != Verdict.MATCH), None)
    if decisive is None:
        return 0
    return int(fails) if decisive == Verdict.MISMATCH else 3
