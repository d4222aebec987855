"""What is said of samples of one prompt (`from_siblings.py`). Nothing reads it back."""

from rlaudit.meaning.from_siblings import Siblings, cut_of, keeps_odds, prompts_needed, reach_of
from rlaudit.meaning.meaning import Kind, Said
from rlaudit.meaning.siblings import Agreement

# The cause, and what to do next.
CAUSES = {
    Kind.RAW_REPORT: (
        "raw-logprobs",
        "set logprobs_mode=processed_logprobs (vLLM 0.10.2 and later) and compare again",
    ),
    Kind.OTHER_REPORT: (
        "dishonest logprobs",
        "score a sample with --score MODEL: it tells which meaning is reported",
    ),
    Kind.TRAINER: (
        "the trainer recomputes another temperature or filter",
        "give the trainer the sampler's temperature and filters, then compare again",
    ),
    Kind.HIDDEN_FILTER: (
        "hidden truncation",
        "set generation_config=vllm and write out top_k, top_p and min_p, then sample again",
    ),
    Kind.HIDDEN_SAMPLING: (
        "hidden sampling parameters",
        "write out every sampling parameter (generation_config=vllm), give the trainer the same, and compare again",
    ),
}
LOGGED = "log trainer_entropy, or score a sample with --score MODEL"


def refuted_by_siblings(kind: Kind, siblings: Siblings) -> Said:
    """Why samples of one prompt convict."""
    side = siblings.trainer if kind is Kind.TRAINER else siblings.report
    assert side is not None
    sharper = "sharper" if side.step.value > 0 else "flatter"
    whose = "the trainer recomputes" if kind is Kind.TRAINER else "is reported"
    # A single step of Newton's falls short of a large change.
    least = "or less" if side.step.value > 0 else "or more"
    like = "a filter" if keeps_odds(side) else f"{1 / max(0.1, 1 + side.step.value):.2f} times the temperature {least}"
    cause, step = CAUSES[kind]
    return Said(
        cause,
        f"samples of one prompt are {sharper} than {whose}: they draw what another sample drew "
        f"{side.excess.value:+.1%} [{side.excess.low:+.1%}, {side.excess.high:+.1%}] more often than its mass, as "
        f"under {like} (1/T {side.step.value:+.1%} [{side.step.low:+.1%}, {side.step.high:+.1%}]; {_size(side)})",
        "the same agreement on new samples of one prompt",
        step,
    )


def evidence_of_siblings(siblings: Siblings | None) -> tuple[str, ...]:
    """The figures of both sides, or why there are none."""
    if siblings is None:
        return ()
    sides = (("what is reported", siblings.report), ("the trainer", siblings.trainer))
    lines = [_line(name, side) for name, side in sides if side is not None and siblings.whole]
    copies = (
        [f"{siblings.left_out} prompts hold copies and are left out"] if siblings.left_out and siblings.whole else []
    )
    return (*(kind.value for kind in siblings.broken), *copies, *lines)


def believed_of_siblings(siblings: Siblings | None) -> str:
    """What would have been seen of a deviation, where nothing was."""
    sides = [] if siblings is None else [side for side in (siblings.report, siblings.trainer) if side is not None]
    reach, cut = (max((of(side) for side in sides), default=0.0) for of in (reach_of, cut_of))
    return (
        f"both sides say, by samples of one prompt: a temperature {reach:.1%} off, or a filter that cuts {cut:.1%} of "
        "the mass, would have been seen"
    )


def what_siblings_leave_open(siblings: Siblings | None) -> str:
    """How large a deviation may be that nothing told."""
    if siblings is None or siblings.broken or siblings.report is None:
        return ""
    return f", and samples of one prompt leave a temperature {reach_of(siblings.report):.0%} off open"


def what_would_tell(siblings: Siblings | None) -> str:
    """What to log or sample next."""
    if siblings is None:
        return f"log the token ids of several samples per prompt; or {LOGGED}"
    if siblings.broken or siblings.report is None:
        return LOGGED
    return f"about {prompts_needed(siblings.report)} prompts with as many samples each; or {LOGGED}"


def _line(name: str, side: Agreement) -> str:
    beyond = f", no top-p below {side.reach:.3f}" if side.reach > 0 else ""
    return (
        f"samples of one prompt against {name}: 1/T of the sampler is {side.step.value:+.1%} "
        f"[{side.step.low:+.1%}, {side.step.high:+.1%}] off; at most {cut_of(side):.1%} of the mass is cut{beyond} "
        f"({_size(side)})"
    )


def _size(side: Agreement) -> str:
    return f"{side.draws} draws in contexts that samples share, {side.prompts} prompts"
