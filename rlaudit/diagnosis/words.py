"""The sentences about a distance (`distance.py`), for ablations and comparisons alike. Nothing parses them."""

import math

from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING
from rlaudit.diagnosis.distance import Distance, Reference, UsualDistance, Yardstick
from rlaudit.layers import Verdict
from rlaudit.measurement.measure import Measurement
from rlaudit.measurement.metric import Clip
from rlaudit.measurement.non_inferiority import NonInferiority
from rlaudit.statistics.estimate import figure

# Of so many prompts without an event, each with a chance of 1 %, one would have shown it in 95 of 100 batches.
ENOUGH = 300
ROWS = {Clip.TOKENS: "tokens", Clip.SEQUENCES: "sequences"}


def evidence(distance: Distance, name: str, margin_from: str) -> tuple[str, ...]:
    """Figures, the yardstick, the consequence and what is usual.

    name: of what was measured, "" where only one thing was. margin_from: where a user's own margin is set.
    """
    k3 = distance.k3
    lines = [f"{f'{name}: ' if name else ''}k3 {_of(k3)} nats; {k3.tokens} tokens in {k3.sequences} sequences"]
    if distance.reference is not None:
        lines.append(_reference(distance.reference))
    if distance.yardstick is Yardstick.MARGIN:
        lines.append(f"held against your own margin of {distance.tolerated:g} nats ({margin_from})")
    if distance.against is not None:
        lines.append(_against(distance.against))
    lines.append(_consequence(distance))
    if distance.usual is not None:
        lines.append(_usual(distance.usual))
    return tuple(lines)


def because(distance: Distance) -> str:
    """Say why the verdict is what it is."""
    return {
        Yardstick.MARGIN: _because_margin,
        Yardstick.REFERENCE: _because_reference,
        Yardstick.CONSEQUENCE: _because_consequence,
    }[distance.yardstick](distance)


def falsifier(distance: Distance) -> str:
    """Say what would refute a match."""
    held = {
        Yardstick.MARGIN: f"k3 above {distance.tolerated:g} nats",
        Yardstick.REFERENCE: f"k3 above {distance.tolerated:.3g} nats where the reference stays at its own",
        Yardstick.CONSEQUENCE: f"more than {NOTICEABLE_CLIPPING:.0%} out of the clip range",
    }[distance.yardstick]
    return f"{held} with more tokens, longer completions or other prompts"


def settles(distance: Distance, more: str) -> str:
    """Say what would settle an inconclusive verdict. more: how to get more tokens."""
    if distance.withheld:
        return (
            "find out what is wrong with the reference (its own settings, its dtype), name a healthy one, or set a "
            "margin of your own if this model is always that far off"
        )
    least = _prompts_needed(distance)
    return f"{more}: {least}" if least else more


def let_pass(distance: Distance | None) -> str:
    """Name the mismatch that this layer lets pass, for the layer after it."""
    if distance is None or distance.yardstick is Yardstick.CONSEQUENCE:
        return "that is left"
    return "within your margin" if distance.yardstick is Yardstick.MARGIN else "no larger than the reference's"


def _of(found: Measurement) -> str:
    return figure(found.value, found.low, found.high)


def _reference(reference: Reference) -> str:
    said = f"{reference.name}: k3 {_of(reference.k3)} nats"
    if not reference.serves:
        why = (
            "its logprobs mean something else than its trainer assumes"
            if reference.semantic is Verdict.MISMATCH
            else "what its logprobs mean is not settled"
        )
        return f"{said}; {why}, so nothing is held against it"
    if reference.odd and reference.usual is not None:
        return f"{said}, farther off than {reference.usual.dtype} usually is (up to {reference.usual.high:.3g})"
    return said


def _against(against: NonInferiority) -> str:
    how = "paired by prompt" if against.paired else "over other prompts"
    ratio = "" if against.ratio is None else f"{against.ratio:.3g} times as far as the reference; "
    return (
        f"{ratio}allowed are {against.times:g} times its k3 and {against.floor:.2g} nats that matter to nothing: "
        f"{figure(against.used, against.low, against.high)} of that is used ({how}, {against.clusters} prompts)"
    )


def _consequence(distance: Distance) -> str:
    felt, settings = distance.consequence, distance.settings
    ranges = {
        Clip.TOKENS: (settings.ppo_epsilon_low, settings.ppo_epsilon_high),
        Clip.SEQUENCES: (settings.gspo_epsilon_low, settings.gspo_epsilon_high),
    }
    shares = []
    for clip, share in felt.shares.items():
        low, high = ranges[clip]
        bound = felt.at_most[clip]
        tells = math.isfinite(bound) and (share.high is None or bound < share.high)
        at_most = f", at most {bound:.2g} by its mean square" if tells else ""
        shares.append(f"{_of(share)} of {ROWS[clip]} out of {1 - low:g} to {1 + high:g}{at_most}")
    return f"the mismatch alone moves {'; '.join(shares)}"


def _usual(usual: UsualDistance) -> str:
    return (
        f"{usual.dtype} is usually {usual.low:.2g} to {usual.high:.2g} nats apart (dense models; about ten times that "
        "with experts or FP8)"
    )


def _because_margin(distance: Distance) -> str:
    if distance.verdict is Verdict.MATCH:
        return f"k3 is below your margin of {distance.tolerated:g} nats with its whole interval"
    if distance.verdict is Verdict.MISMATCH:
        return f"k3 is above your margin of {distance.tolerated:g} nats with its whole interval"
    return f"the interval of k3 reaches over your margin of {distance.tolerated:g} nats{_why(distance.k3.reason)}"


def _because_reference(distance: Distance) -> str:
    against = distance.against
    assert against is not None
    used = figure(against.used, against.low, against.high)
    if distance.withheld:
        return (
            f"no farther from the trainer than the reference ({used} of what is allowed), which is itself farther off "
            "than its dtype usually is: it cannot vouch for a candidate that is so as well"
        )
    if distance.verdict is Verdict.MATCH:
        felt = distance.consequence.verdict is not Verdict.MATCH
        rest = "; what that clips is the objective's to judge" if felt else ""
        return f"no farther from the trainer than the reference: {used} of what is allowed is used{rest}"
    if distance.verdict is Verdict.MISMATCH:
        return f"farther from the trainer than the reference: {used} of what is allowed is used"
    return (
        f"whether it is farther from the trainer than the reference is not decided: {used} of what is allowed is used"
        f"{_why(against.reason)}"
    )


def _because_consequence(distance: Distance) -> str:
    felt = distance.consequence
    over = [
        f"{_of(share)} of {ROWS[clip]}"
        for clip, share in felt.shares.items()
        if share.low is not None and share.low > NOTICEABLE_CLIPPING
    ]
    alone = "" if distance.reference is None else " (the reference cannot serve)"
    if distance.verdict is Verdict.MATCH:
        return f"less than {NOTICEABLE_CLIPPING:.0%} leaves the clip range by the mismatch alone{alone}"
    if distance.verdict is Verdict.MISMATCH and over:
        return f"the mismatch alone pushes {' and '.join(over)} out of the clip range{alone}"
    return (
        f"whether the mismatch alone pushes {NOTICEABLE_CLIPPING:.0%} out of the clip range is not decided"
        f"{_why(distance.k3.reason)}{alone}"
    )


def _why(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _prompts_needed(distance: Distance) -> str:
    """Return how many prompts without an event would rule NOTICEABLE_CLIPPING out."""
    unseen = [share for share in distance.consequence.shares.values() if share.value is not None and share.value <= 0.0]
    if distance.yardstick is not Yardstick.CONSEQUENCE or len(unseen) < len(distance.consequence.shares):
        return ""
    return f"{ENOUGH} prompts of which none is clipped rule out {NOTICEABLE_CLIPPING:.0%}; or name a reference"
