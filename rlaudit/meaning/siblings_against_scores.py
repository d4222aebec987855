"""Where samples of one prompt and the trainer's scores contradict each other about one set of tokens.

Scores decide: they know whole distributions. Samples of one prompt know neither the trainer nor its meanings, so they
fail for other reasons, and a contradiction is worth a look: a scorer that is not the trainer, groups that are none.
"""

from collections.abc import Mapping
from enum import StrEnum

from rlaudit.meaning.from_siblings import Siblings
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.siblings import Agreement


class Side(StrEnum):
    """Whose logprobs."""

    REPORT = "what is reported"
    TRAINER = "the trainer"


# The sides from which tokens were not drawn, by what the scores say. What is open says nothing.
OFF: Mapping[Kind, frozenset[Side]] = {
    Kind.AGREE: frozenset(),
    Kind.RAW_REPORT: frozenset({Side.REPORT}),
    Kind.OTHER_REPORT: frozenset({Side.REPORT}),
    Kind.TRAINER: frozenset({Side.TRAINER}),
    Kind.HIDDEN_FILTER: frozenset(Side),
    Kind.HIDDEN_SAMPLING: frozenset(Side),
}


def sides_of(siblings: Siblings) -> dict[Side, Agreement]:
    """The sides that have logprobs."""
    found = {Side.REPORT: siblings.report, Side.TRAINER: siblings.trainer}
    return {side: agreement for side, agreement in found.items() if agreement is not None}


def contradicted(kind: Kind, siblings: Siblings) -> dict[Side, bool]:
    """The sides on which both are sure and not of one mind, and whether samples of one prompt call that side off.

    kind: what the scores say.
    """
    said = OFF.get(kind)
    if said is None:
        return {}
    sides = sides_of(siblings)
    off = {side: True for side, found in sides.items() if side not in said and siblings.off(found)}
    return off | {side: False for side, found in sides.items() if side in said and siblings.same(found)}
