"""The effect of each factor: set alone on the candidate, and left out of the parity settings."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.effect import Effect, EffectVerdict
from rlaudit.report.figures import TITLES, difference
from rlaudit.report.rendering.drawing.forest import Mark, Row, forest, height_of
from rlaudit.report.rendering.drawing.styles import CANDIDATE, MUTED, OTHER
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind, Table

if TYPE_CHECKING:
    from rlaudit.report.report import Report

TITLE = "Effects of the factors"
CAPTION = (
    "Difference in {metric}, paired by prompt, with its 95 % interval. Filled: the factor alone, on the candidate. "
    "Hollow: left out of parity. Shaded: the noise of repeats."
)
COLOURS: Mapping[str, str] = {
    EffectVerdict.REMOVES: OTHER,
    EffectVerdict.REDUCES: OTHER,
    EffectVerdict.ADDS: CANDIDATE,
}


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a forest for each block and metric."""
    by_panel: dict[tuple[str, str], list[Effect]] = {}
    for effect in report["effects"]:
        if effect.first is not None and effect.first.difference is not None and effect.worth_a_row:
            by_panel.setdefault((effect.block, effect.metric), []).append(effect)
    if not by_panel:
        return [Missing(TITLE, "no factor was changed, or none changed anything in the loaded engine")]
    several = len({block for block, _ in by_panel}) > 1
    return [
        _picture(index, block if several else "", metric, effects)
        for index, ((block, metric), effects) in enumerate(by_panel.items())
    ]


def _picture(index: int, block: str, metric: str, effects: Sequence[Effect]) -> Picture:
    rows = [_row(effect) for effect in effects]
    title = TITLES.get(metric, metric)
    return Picture(
        f"effects-{index}",
        f"{TITLE} on {title}",
        CAPTION.format(metric=title),
        Table(
            ["factor", "verdict", "alone [95 % interval]", "left out of parity [95 % interval]"],
            [
                [
                    f"{effect.factor}={effect.level}",
                    effect.verdict,
                    difference(effect.first),
                    difference(effect.last),
                ]
                for effect in effects
            ],
        ),
        height_of(rows),
        lambda figure: forest(figure, rows, effects[0].floor, f"difference in {title}", positive=False),
        group=block,
    )


def _row(effect: Effect) -> Row:
    contrasts = [(effect.first, False), (effect.last, True)]
    marks = [
        Mark(contrast.difference, contrast.low, contrast.high, hollow)
        for contrast, hollow in contrasts
        if contrast is not None and contrast.difference is not None
    ]
    return Row(f"{effect.factor}={effect.level}", effect.verdict, marks, COLOURS.get(effect.verdict, MUTED))


PICTURES = PictureKind("effects", 30, frozenset({"ablate", "diagnose"}), pictures)
