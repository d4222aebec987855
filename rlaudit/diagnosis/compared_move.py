"""The move between two logs: what ran today, and what is to run, each compared with its trainer."""

from typing import TYPE_CHECKING

from rlaudit.diagnosis.answer import answered
from rlaudit.diagnosis.consequence import unfelt_k2
from rlaudit.diagnosis.move import METRIC, Change, Move, Side, change_of_distance, unsettled
from rlaudit.layers import Verdict

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare import Comparison

COMES_FIRST = "what the logprobs mean comes first"


def compared_move(today: "Comparison", after: "Comparison") -> Move:
    """Return what the move changes. Both with their sentences (`worded`)."""
    return answered(_side(today), _side(after), _distance(today, after), after.layers)


def _side(comparison: "Comparison") -> Side:
    semantic, measured = comparison.layers[0], comparison.evidence.measurements
    settled = semantic.verdict is not Verdict.MISMATCH
    return Side(
        vllm=None,
        layers=comparison.verdicts,
        causes=semantic.causes,
        cause=semantic.cause,
        ratio=measured.get("mean_ratio_minus_one"),
        k3=measured.get(METRIC) if settled else None,
        unsettled=unsettled(semantic),
    )


def _distance(today: "Comparison", after: "Comparison") -> tuple[Change, str]:
    before, now = today.evidence, after.evidence
    if Verdict.MISMATCH in (today.verdicts[0], after.verdicts[0]):
        return Change.UNKNOWN, COMES_FIRST
    if before.tally is None or now.tally is None:
        return Change.UNKNOWN, "a side has no trainer logprobs"
    settings = now.settings
    least = unfelt_k2(now.measurements, settings.objective, now.counts.shortest_sequence)
    return change_of_distance(before.tally, now.tally, settings.margin or least, seed=settings.seed)
