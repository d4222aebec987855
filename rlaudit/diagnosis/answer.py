"""The answer to the question of a move, in at most three sentences: what it changes, what to set, what is so today."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rlaudit.diagnosis.move import Change, Move, Side, changes_of, named_causes
from rlaudit.layers import Judgement, Layer, Verdict

MEANING = {
    Change.SAME: "The move keeps what the logprobs mean",
    Change.BROKEN: "The move breaks what the logprobs mean ({because})",
    Change.FIXED: "The move fixes what the logprobs mean ({because})",
    Change.CHANGED: "The move changes what is wrong with the logprobs ({because})",
    Change.UNKNOWN: "It is not known whether the move changes what the logprobs mean: {because}",
}
# If the new engine's mean something else than the trainer assumes.
NAMED = {
    Change.SAME: "The move does not change what the logprobs mean",
    Change.UNKNOWN: "The new engine's logprobs are not what the trainer assumes ({causes}); today's could not be judged"
    "{why}",
}
DISTANCE = {
    Change.SAME: "the logprobs stay as near to the trainer",
    Change.NEARER: "the logprobs come nearer to the trainer",
    Change.FARTHER: "the logprobs go farther from the trainer",
}


def answered(
    today: Side | None,
    after: Side,
    distance: tuple[Change, str],
    layers: Sequence[Judgement],
    fixed: Side | None = None,
) -> Move:
    """Return the move between two sides with its answer. distance: as in `changes_of`. layers: of the new engine."""
    move = Move(today=today, after=after, fixed=fixed, changes=changes_of(today, after, distance))
    return replace(move, answer=answer(move, next((layer for layer in layers if not layer.verdict.passes), None)))


def answer(move: Move, first: Judgement | None) -> tuple[str, ...]:
    """Return the sentences. first: the first layer of the new engine that does not pass, which says what is next."""
    lines = [*_changes(move)]
    today, meaning = move.today, move.changes[0].change
    to_do = [*_to_do(first)]
    wrong: list[str] = []
    if today is not None and today.layers[0] is Verdict.MISMATCH and meaning is not Change.FIXED:
        already = " already" if meaning is Change.SAME else ""
        wrong = [f"Wrong today{already}: {named_causes(today)}{_ratio(today)}."]
    # What is to be done stands behind what it is about: what the move brings, or what is so today already.
    lines += [*wrong, *to_do] if meaning is Change.SAME else [*to_do, *wrong]
    objective = move.changes[2]
    if objective.change is Change.SAME and not move.after.layers[2].passes:
        lines.append(f"Layer 3 (objective) is already a mismatch today: {objective.because}.")
    return tuple(lines)


def _to_do(first: Judgement | None) -> Iterator[str]:
    """Yield what is to be done. What the logprobs mean has been said; of a later layer the verdict is said first."""
    if first is not None and first.next:
        is_said = first.layer is Layer.SEMANTIC
        verdict = (
            "" if is_said else f"After the move, the verdict of the {first.layer} layer is {first.verdict.value}. "
        )
        yield f"{verdict}To do: {first.next}."


def _changes(move: Move) -> Iterator[str]:
    """Yield what the move does to the meaning of logprobs, and to their distance from the trainer."""
    if move.today is None:
        yield "It is not known what the move changes, because today's engine was not measured."
        return
    meaning, path, _ = move.changes
    before, now = move.today.layers[0], move.after.layers[0]
    # By how much ratios are off then; if nothing changes, the sentence about today says it.
    off = _ratio(move.after) if now is Verdict.MISMATCH else _ratio(move.today) if before is Verdict.MISMATCH else ""
    meant = MEANING[meaning.change].format(because=f"{meaning.because}{off}")
    if before is now is Verdict.MISMATCH and meaning.change is Change.FIXED:
        meant = MEANING[Change.CHANGED].format(because=f"{meaning.because}{off}")
    elif now is Verdict.MISMATCH and meaning.change in NAMED:
        meant = NAMED[meaning.change].format(causes=f"{named_causes(move.after)}{off}", why=_why(move.today))
    if path.change in DISTANCE and meaning.change is not Change.UNKNOWN:
        joined = ", and " if meaning.change is Change.SAME else ". Apart from that, "
        yield f"{meant}{joined}{DISTANCE[path.change]} ({path.because})."
        return
    yield f"{meant}."
    # Else the first sentence says what comes first.
    if Verdict.MISMATCH not in (before, now):
        nearer = DISTANCE.get(path.change, "it is not known whether the logprobs come nearer to the trainer")
        yield f"{nearer[0].upper()}{nearer[1:]}: {path.because}."


def _why(today: Side) -> str:
    return f" ({today.unsettled})" if today.unsettled else ""


def _ratio(side: Side) -> str:
    """Say what the mismatch of a side does to ratios; "" if its interval has both signs."""
    ratio = side.ratio
    if ratio is None or ratio.value is None or ratio.low is None or ratio.high is None or ratio.low <= 0 <= ratio.high:
        return ""
    return f", ratios are {100 * abs(ratio.value):.1f} % too {'high' if ratio.value > 0 else 'low'}"
