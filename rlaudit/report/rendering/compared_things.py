"""What a report compares, group by group: the arms of each block of an ablation, or the tables of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlaudit.report.figures import arm_state
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.tokens.token_figures import TokenFigures

if TYPE_CHECKING:
    from rlaudit.report.report import Report

SERIES = 4
NO_TOKENS = "the report holds no figures of tokens (an older rlaudit wrote it, or nothing was sampled)"
MAIN_ROLES = ("candidate", "reference", "parity")


@dataclass(frozen=True)
class Thing:
    """An arm or a table."""

    name: str
    role: str
    measurements: Mapping[str, Measurement]
    state: str  # why it has no figures, empty if it has
    tokens: TokenFigures | None = None

    @property
    def short_name(self) -> str:
        """Return an arm's name with a sign for the beginning that many arms share."""
        return self.name.replace("candidate + ", "+ ").replace("parity - ", "− ")


@dataclass(frozen=True)
class Group:
    """Things that share axes."""

    name: str  # empty if there is only one group
    slug: str  # unique, of letters and digits
    things: Sequence[Thing]
    floor: Mapping[str, float] = field(default_factory=dict)  # the noise of repeats by metric

    @property
    def main(self) -> list[Thing]:
        """Return what is drawn line by line: candidate, reference and parity, or the first tables."""
        by_role = {role: thing for role in MAIN_ROLES for thing in self.things if thing.role == role and thing.tokens}
        return list(by_role.values()) or [thing for thing in self.things if thing.tokens][:SERIES]


def groups(report: "Report") -> list[Group]:
    """Return the groups in the report's order."""
    tokens = {(figures.block, figures.name): figures for figures in report.get("token_figures", ())}
    if report.get("comparisons"):
        things = [
            Thing(table.name, "", table.measurements, "", tokens.get((None, table.name)))
            for table in report["comparisons"]
        ]
        return [Group("", "tables", things)]
    compared, blocks = [], report.get("blocks", ())
    for number, block in enumerate(blocks):
        things = [
            Thing(
                arm.name,
                arm.role,
                arm.measurements,
                "" if arm.measurements else arm_state(arm) if arm.status != "ok" else "no tokens",
                tokens.get((block.name, arm.name)),
            )
            for arm in report["arms"]
            if arm.block == block.name
        ]
        floor = {metric: noise.value for metric, noise in block.noise_floor.items()}
        compared.append(Group(block.name if len(blocks) > 1 else "", f"block{number}", things, floor))
    return compared
