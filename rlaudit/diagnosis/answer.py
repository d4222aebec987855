"""The answer to the question of a move, in at most three sentences: what it changes, what to set, what is so today."""

from rlaudit.diagnosis.move import Change, Move, named_causes
from rlaudit.layers import Verdict

MEANING = {
    Change.SAME: "The move keeps what the logprobs mean",
    Change.BROKEN: "The move breaks what the logprobs mean ({causes})",
    Change.FIXED: "The move fixes what the logprobs mean ({causes})",
    Change.UNKNOWN: "Whether the move changes what the logprobs mean is not known: {because}",
}
DISTANCE = {
    Change.SAME: "leaves them as near to the trainer",
    Change.NEARER: "brings them nearer to the trainer",
    Change.FARTHER: "takes them farther from the trainer",
}


def answer(move: Move, step: str) -> tuple[str, ...]:
    """Return the sentences. step: what the first layer that does not pass says is to be done next; "" for none."""
    lines = [_changes(move)]
    if step and any(not verdict.passes for verdict in move.after.layers):
        lines.append(f"To do: {step}.")
    today = move.today
    if today is not None and today.layers[0] is Verdict.MISMATCH and move.changes[0].change is not Change.FIXED:
        lines.append(f"So today already: {named_causes(today)}{_ratio(move)}.")
    return tuple(lines)


def _changes(move: Move) -> str:
    meaning, path, _ = move.changes
    if move.today is None:
        return "What the move changes is not known: today's engine was not measured."
    said = MEANING[meaning.change].format(causes=meaning.because, because=meaning.because)
    if meaning.change is Change.SAME and move.after.layers[0] is Verdict.MISMATCH:
        said = "The move changes nothing of what the logprobs mean"
    if path.change in DISTANCE:
        joint = ";" if meaning.change is Change.UNKNOWN else " and"
        it = " it" if meaning.change is Change.UNKNOWN else ""
        return f"{said}{joint}{it} {DISTANCE[path.change]} ({path.because})."
    return f"{said}. Whether it brings them nearer to the trainer is not known: {path.because}."


def _ratio(move: Move) -> str:
    """Say what the mismatch of today does to ratios."""
    ratio = None if move.today is None else move.today.ratio
    if ratio is None or ratio.value is None or ratio.low is None or ratio.high is None or ratio.low <= 0 <= ratio.high:
        return ""
    return f", ratios are {abs(ratio.value):.1%} too {'high' if ratio.value > 0 else 'low'}"
