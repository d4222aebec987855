"""What a move changes, layer by layer: both sides judged by the same judge, and what differs between them.

semantic        same, broken, fixed or changed: the causes that both sides have, and those that one has alone;
inference path  same, nearer or farther: k3 under the meaning that fits each side, so that a difference of meaning that
                both have hides nothing;
objective       same, broken or fixed: whether what is left leaves the clip range.

A side without a verdict leaves the change open, unless the mean ratios of both sides settle it: it is derived from
both and never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT
from rlaudit.statistics.measurement.measure import Measurement, Tally, all_metrics
from rlaudit.statistics.measurement.non_inferiority import non_inferiority

METRIC = "k3"


class Change(StrEnum):
    """What a move does to one layer."""

    SAME = "same"
    BROKEN = "broken"
    FIXED = "fixed"
    # Wrong on both sides, and now in another way.
    CHANGED = "changed"
    NEARER = "nearer"
    FARTHER = "farther"
    UNKNOWN = "not known"

    @property
    def is_worse(self) -> bool:
        """Whether the move makes the layer worse."""
        return self in (Change.BROKEN, Change.CHANGED, Change.FARTHER)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One engine of a move.

    layers: its own verdicts, in order. causes: of its first layer, by their names in `explain`; cause: in words. ratio:
    mean ratio - 1, as reported. k3: nats, under the meaning that fits; None if none does.
    """

    vllm: str | None
    layers: tuple[Verdict, Verdict, Verdict]
    causes: Sequence[str] = ()
    cause: str | None = None
    ratio: Measurement | None = None
    k3: Measurement | None = None
    # Of a run: its name in the figures. And why layer 1 is not settled, if it is not.
    arm: str | None = None
    unsettled: str | None = None


@dataclass(frozen=True, kw_only=True)
class LayerChange:
    """What the move does to a layer. because: one clause for people."""

    layer: Layer
    change: Change
    because: str


@dataclass(frozen=True, kw_only=True)
class Move:
    """Both sides and what differs. fixed: the new engine with the fix, if one was run. answer: in sentences."""

    today: Side | None
    after: Side
    fixed: Side | None = None
    changes: tuple[LayerChange, LayerChange, LayerChange]
    answer: Sequence[str] = ()

    def between(self, today: str | None, after: str | None) -> "Move":
        """Return the move with the releases of vLLM of its sides."""
        old = None if self.today is None else replace(self.today, vllm=today)
        return replace(self, today=old, after=replace(self.after, vllm=after))


def changes_of(
    today: Side | None, after: Side, distance: tuple[Change, str]
) -> tuple[LayerChange, LayerChange, LayerChange]:
    """Return what the move does to each layer. distance: to the inference path, by `change_of_distance`."""
    if today is None:
        unknown = (Change.UNKNOWN, "today's engine was not measured")
        semantic, path, objective = unknown, unknown, unknown
    else:
        semantic, path, objective = _of_meaning(today, after), distance, _of_objective(today, after)
    return (
        LayerChange(layer=Layer.SEMANTIC, change=semantic[0], because=semantic[1]),
        LayerChange(layer=Layer.INFERENCE_PATH, change=path[0], because=path[1]),
        LayerChange(layer=Layer.OBJECTIVE, change=objective[0], because=objective[1]),
    )


def change_of_distance(
    today: Tally, after: Tally, unfelt: float, noise: float = 0.0, seed: int = 0
) -> tuple[Change, str]:
    """Return whether the engine comes nearer to the trainer: as in `non_inferiority.py`, asked in both directions.

    unfelt: k3 (nats) that does not matter. noise: k3 (nats) that repeats differ by. Both tallies hold k3 under the
    meaning that fits their side.
    """
    metric, least = all_metrics()[METRIC], max(unfelt, noise)
    forth = non_inferiority(after, today, metric, least, seed=seed)
    back = non_inferiority(today, after, metric, least, seed=seed)
    if forth.candidate is None or forth.reference is None:
        return Change.UNKNOWN, forth.reason or "no token has a ratio on both sides"
    because = f"k3 {forth.reference:.3g} -> {forth.candidate:.3g} nats"
    if forth.verdict is Verdict.MISMATCH:
        return Change.FARTHER, because
    if back.verdict is Verdict.MISMATCH:
        return Change.NEARER, because
    if forth.verdict is Verdict.MATCH:
        # 1.4e-11 -> 4.7e-11 reads as three times as far, and is nothing.
        larger, small = max(forth.reference, forth.candidate), ""
        if larger <= least:
            small = ", both negligible" if larger <= unfelt else ", both within the noise of repeats"
        return Change.SAME, because + small
    return Change.UNKNOWN, f"{because}: {forth.reason or 'too few tokens to tell'}"


def _of_meaning(today: Side, after: Side) -> tuple[Change, str]:
    before, now = today.layers[0], after.layers[0]
    if not all(verdict.passes or verdict is Verdict.MISMATCH for verdict in (before, now)):
        return _by_mean_ratios(today, after)
    if before.passes and now.passes:
        return Change.SAME, "both mean what the trainer assumes"
    if before.passes or now.passes:
        change, named = (Change.BROKEN, after) if before.passes else (Change.FIXED, today)
        return change, named_causes(named)
    if _told(today) == _told(after):
        return Change.SAME, f"both: {named_causes(after)}"
    gone = not set(_told(after)) - set(_told(today))
    return (Change.FIXED if gone else Change.CHANGED), f"{named_causes(today)} -> {named_causes(after)}"


def _by_mean_ratios(today: Side, after: Side) -> tuple[Change, str]:
    """Return the change if a side has no verdict: its data may still show that the fault of the other is not there."""
    before, now = today.layers[0], after.layers[0]
    if now is Verdict.MISMATCH and _is_off(today) is False and _is_off(after):
        return Change.BROKEN, named_causes(after)
    if before is Verdict.MISMATCH and _is_off(after) is False and _is_off(today):
        return Change.FIXED, named_causes(today)
    is_today = not (before.passes or before is Verdict.MISMATCH)
    side, whose = (today, "today's engine") if is_today else (after, "the new engine")
    why = f" ({side.unsettled})" if side.unsettled else ""
    return Change.UNKNOWN, f"it is not settled what the logprobs of {whose} mean{why}"


def _is_off(side: Side) -> bool | None:
    """Return whether the mean ratio of a side is off 1 by what matters; None if its interval leaves that open."""
    low, high = (None, None) if side.ratio is None else (side.ratio.low, side.ratio.high)
    if low is None or high is None:
        return None
    if low > MEAN_RATIO_EFFECT or high < -MEAN_RATIO_EFFECT:
        return True
    return False if low > -MEAN_RATIO_EFFECT and high < MEAN_RATIO_EFFECT else None


def _of_objective(today: Side, after: Side) -> tuple[Change, str]:
    before, now = today.layers[2], after.layers[2]
    untested = next((side for side in (after, today) if side.layers[2] is Verdict.NOT_TESTED), None)
    if untested is not None:
        first = next(
            (layer for layer, verdict in zip(Layer, untested.layers, strict=True) if not verdict.passes), Layer.SEMANTIC
        )
        return Change.UNKNOWN, f"fix the {first} layer first"
    if Verdict.INCONCLUSIVE in (before, now):
        return Change.UNKNOWN, "too few tokens to tell"
    if before.passes == now.passes:
        stay = "keep tokens and sequences within" if now.passes else "push tokens or sequences out of"
        return Change.SAME, f"both engines {stay} the clip range of the objective"
    return (
        (Change.BROKEN, "the new engine pushes tokens or sequences out of the clip range")
        if before.passes
        else (Change.FIXED, "the new engine keeps tokens and sequences within the clip range")
    )


def unsettled(judgement: Judgement) -> str | None:
    """Return why what the logprobs of a side mean is not settled, in a clause; None if it is."""
    settled = judgement.verdict.passes or judgement.verdict is Verdict.MISMATCH
    return None if settled else judgement.because.partition(". ")[0]


def named_causes(side: Side) -> str:
    """Return the causes of a side's first layer by their names, in words if they have none."""
    return ", ".join(side.causes) or side.cause or "unexplained"


def _told(side: Side) -> tuple[str, ...]:
    return tuple(sorted(side.causes)) or (side.cause or "",)
