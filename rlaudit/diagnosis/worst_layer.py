"""Several judgements as one: the worst decides, the others are named."""

from collections.abc import Iterable, Sequence

from rlaudit.layers import WORST_FIRST, Verdict
from rlaudit.report.parts.diagnosis import Judged

Layers = Sequence[Judged]


def worst_layers(named: Sequence[tuple[str, Layers]]) -> list[Judged]:
    """The layers of the worst of several things, each with its name: a later layer is read with its own earlier ones.

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
