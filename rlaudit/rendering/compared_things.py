"""What a report compares, group by group: the arms of each block of an ablation, or the tables of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlaudit.measurement.measure import Measurement
from rlaudit.report.figures import arm_state
from rlaudit.tokens.token_figures import TokenFigures

if TYPE_CHECKING:
    from rlaudit.report.report import Report

SERIES = 4
NO_TOKENS = "the report holds no figures of tokens (an older rlaudit wrote it, or nothing was sampled)"
MAIN_ROLES = ("candidate", "reference", "parity")


@dataclass(frozen=True)
class Thing:
    """An arm or a table. `state`: why it has no figures, empty if it has. `tokens`: its entry of token_figures."""

    name: str
    role: str
    measurements: Mapping[str, Measurement]
    state: str
    tokens: TokenFigures | None = None

    @property
    def short_name(self) -> str:
        """Return an arm's name without what every arm's name begins with."""
        return self.name.replace("candidate + ", "+ ").replace("parity - ", "− ")


@dataclass(frozen=True)
class Group:
    """Things that share axes. `name`: empty where there is one group. `slug`: unique, of letters and digits.

    floor: noise floor by metric.
    """

    name: str
    slug: str
    things: Sequence[Thing]
    floor: Mapping[str, float] = field(default_factory=dict)

    @property
    def main(self) -> list[Thing]:
        """Candidate, reference and parity, or the first tables: what is drawn line by line."""
        by_role = {role: thing for role in MAIN_ROLES for thing in self.things if thing.role == role and thing.tokens}
        return list(by_role.values()) or [thing for thing in self.things if thing.tokens][:SERIES]


def groups(document: "Report") -> list[Group]:
    """Return the groups in the document's order."""
    tokens = {(one.block, one.name): one for one in document.get("token_figures", ())}
    if document.get("comparisons"):
        things = [
            Thing(one.name, "", one.measurements, "", tokens.get((None, one.name))) for one in document["comparisons"]
        ]
        return [Group("", "tables", things)]
    found, blocks = [], document.get("blocks", ())
    for number, block in enumerate(blocks):
        things = [
            Thing(
                arm.name,
                arm.role,
                arm.measurements,
                "" if arm.measurements else arm_state(arm) if arm.status != "ok" else "no tokens",
                tokens.get((block.name, arm.name)),
            )
            for arm in document["arms"]
            if arm.block == block.name
        ]
        floor = {name: one.value for name, one in block.noise_floor.items()}
        found.append(Group(block.name if len(blocks) > 1 else "", f"block{number}", things, floor))
    return found
