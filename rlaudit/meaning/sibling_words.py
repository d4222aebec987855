"""The sentences about samples of one prompt (`from_siblings.py`). Nothing parses them."""

from dataclasses import dataclass

from rlaudit.meaning.from_siblings import (
    Deviation,
    Siblings,
    cut_of,
    keeps_odds,
    prompts_needed,
    reach_of,
    smallest_of,
)
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.siblings import Agreement
from rlaudit.statistics.estimate import Estimate
from rlaudit.text.counted import counted

# The cause, and what to do next.
CAUSES = {
    Kind.RAW_REPORT: (
        "raw-logprobs",
        "set logprobs_mode=processed_logprobs (vLLM 0.10.2 and later) and compare again",
    ),
    Kind.OTHER_REPORT: (
        "misreported logprobs",
        "score a sample with --score MODEL: this shows which meaning the reported logprobs have",
    ),
    Kind.TRAINER: (
        "the trainer recomputes another temperature or filter",
        "give the trainer the sampler's temperature and filters, then compare again",
    ),
    Kind.OFF_TRAINER: (
        "unexplained: another temperature or filter in the trainer (layer 1), or other weights (layer 2)",
        "compare weight checksums of both sides; or score a sample with --score MODEL, which tries temperatures",
    ),
    Kind.HIDDEN_FILTER: (
        "hidden truncation",
        "set generation_config=vllm and write out top_k, top_p and min_p, then sample again",
    ),
    Kind.LEFT_OUT: (
        "penalty",
        "sample without the penalty (repetition_penalty=1, presence_penalty=0, frequency_penalty=0, no logit_bias), or "
        "set logprobs_mode=processed_logprobs and apply it in the trainer as well",
    ),
    Kind.HIDDEN_SAMPLING: (
        "hidden sampling parameters",
        "write out every sampling parameter (generation_config=vllm), give the trainer the same, and compare again",
    ),
}
# Not a matter of more samples: why the data cannot tell.
NO_SUCH_FIGURE = {
    Deviation.TOP_K: "one logprob per token does not give the rank of the token; a larger top-k shows only by the "
    "mass that it cuts",
    Deviation.PENALTY: "a penalty moves probability between tokens that are equally likely",
}
AGREE_OTHERWISE = (
    "in new samples of a prompt, two samples draw the same token more or less often than the reported logprobs say"
)
LOGGED = "log trainer_entropy, or score a sample with --score MODEL"
LOGGED_SHOWS = f"{LOGGED}: both show a temperature with fewer tokens"


@dataclass(frozen=True)
class Conclusion:
    """A meaning in sentences."""

    # Of a mismatch, else None.
    cause: str | None
    because: str
    # When it is wrong, after "wrong if:".
    falsifier: str = ""
    # The experiment that settles it.
    next: str = ""


def mismatch_in_siblings(kind: Kind, siblings: Siblings) -> Conclusion:
    """Say what samples of one prompt show."""
    is_trainer = kind in {Kind.TRAINER, Kind.OFF_TRAINER}
    side = siblings.trainer if is_trainer else siblings.report
    assert side is not None
    sharper = "more" if side.step.value > 0 else "less"
    whose = "the trainer's logprobs say" if is_trainer else "its own logprobs say"
    like = f"a {'lower' if side.step.value > 0 else 'higher'} temperature"
    if keeps_odds(side):
        # The odds of kept tokens move with a temperature; whether they did, few samples leave open.
        like = "a filter" if kind is Kind.HIDDEN_FILTER else f"a filter or {like}"
    like = (
        f"raw logprobs have this effect, since they leave out the requested parameters. {like[0].upper()}{like[1:]} "
        "has it, too"
        if kind is Kind.RAW_REPORT
        else f"{like} has this effect"
    )
    if kind is Kind.LEFT_OUT:
        like = (
            f"a requested penalty that both sides' logprobs leave out has this effect. {like[0].upper()}{like[1:]}, too"
        )
    cause, step = CAUSES[kind]
    but = (
        ""
        if kind is not Kind.OFF_TRAINER
        else ". But then the log ratio would change with the logprobs, and here it does not"
    )
    return Conclusion(
        cause,
        f"the sampler draws likely tokens {sharper} often than {whose}: {_as_seen(side)}. "
        f"{like[0].upper()}{like[1:]}{but}. Basis: {_size(side)}",
        "in new samples of a prompt, two samples draw the same token as often as the logprobs say",
        step,
    )


def evidence_of_siblings(siblings: Siblings | None) -> tuple[str, ...]:
    """Return the figures of both sides, or why there are none."""
    if siblings is None:
        return ()
    lines = [_line(name, side) for name, side in siblings.sides.items() if siblings.whole]
    if siblings.left_out and siblings.whole:
        lines.insert(0, f"{counted(siblings.left_out, 'prompt')} were left out, because the samples are copies")
    return (*(kind.value for kind in siblings.broken), *lines)


def believed_of_siblings(siblings: Siblings) -> str:
    """Say what both sides show if neither is off."""
    return f"both sides say. Samples of one prompt show this: {would_have_been_seen(siblings)}"


def would_have_been_seen(siblings: Siblings) -> str:
    """Return the smallest deviation that would have been seen, and by name those that would not."""
    smallest = smallest_of(siblings.sides.values())
    beyond = [
        f"top-p below {smallest.top_p:.3f}" if smallest.top_p > 0 else "",
        f"min-p above {smallest.min_p:.2g}" if smallest.min_p < 1 else "",
        f"top-k below {smallest.top_k}" if smallest.top_k > 1 else "",
    ]
    bounds = ", ".join(bound for bound in beyond if bound)
    witnessed = f". So would any {bounds}, since tokens beyond it were drawn" if bounds else ""
    unseen = [
        f"{deviation.value} ({NO_SUCH_FIGURE[deviation]})" if deviation in NO_SUCH_FIGURE else deviation.value
        for deviation in smallest.unseen
    ]
    return (
        f"a temperature {100 * smallest.temperature:.1f} % off, or a filter that cuts {100 * smallest.mass:.1f} % of "
        f"the mass, would have been seen{witnessed}. Not seen: {', '.join(unseen)}"
    )


def what_siblings_leave_open(siblings: Siblings | None) -> str:
    """Say how large a deviation may be that nothing shows."""
    if siblings is None or siblings.broken:
        return ""
    return f", and samples of one prompt do not rule out a temperature {100 * reach_of(siblings.report):.0f} % off"


def what_would_tell(siblings: Siblings | None) -> str:
    """Say what to log or sample next."""
    if siblings is None:
        return f"log the token ids of several samples per prompt, or {LOGGED}"
    if siblings.broken:
        return LOGGED
    needed = prompts_needed(siblings.report)
    samples = (
        "take more samples of each prompt"
        if needed is None
        else f"take about {needed} prompts with as many samples each"
    )
    return f"{samples}, or {LOGGED}"


def leaning_of_siblings(siblings: Siblings) -> str:
    """Say what too few samples look like."""
    step = siblings.report.step
    if not siblings.whole or step.low <= 0.0 <= step.high:
        return "samples of one prompt neither rule the reported logprobs out nor confirm them closely"
    sharper = "more" if step.value > 0 else "less"
    return (
        f"samples of one prompt draw likely tokens {sharper} often than reported, but there are too few samples to "
        "be sure"
    )


def _line(name: str, side: Agreement) -> str:
    low, high, cut = side.step.low, side.step.high, cut_of(side)
    shows = (
        f"do not contradict the temperature of {name}"
        if low <= 0 <= high
        else f"show another temperature than {name}, or a filter"
    )
    bounds = [
        # A bound of everything excludes nothing.
        f"any filter removes at most {100 * cut:.1f} % of the probability" if cut < 1 else "",
        f"any top-p is at least {side.reach:.3f}" if side.reach > 0 else "",
    ]
    bounded = "; ".join(filter(None, bounds))
    return ". ".join(
        [
            f"the drawn tokens {shows}: 1/T, estimated from them, differs by {100 * side.step.value:+.1f} % "
            f"[{100 * low:+.1f} %, {100 * high:+.1f} %]",
            *([f"{bounded[0].upper()}{bounded[1:]}"] if bounded else []),
            f"Basis: {_size(side)}",
        ]
    )


def more_often(excess: Estimate) -> str:
    """Say how much more or less often something happens: the difference of two shares, in percentage points."""
    sign, how = (1, "more") if excess.value >= 0 else (-1, "less")
    low, high = sorted((sign * excess.low, sign * excess.high))
    return f"{100 * abs(excess.value):.1f} percentage points [{100 * low:.1f}, {100 * high:.1f}] {how} often"


def _as_seen(side: Agreement) -> str:
    """Say by what samples of a prompt show another sharpness: by how often they agree, if that moves the same way.

    A penalty makes likely tokens rarer, and samples may still agree more often on what is left.
    """
    if side.step.value * side.excess.value > 0:
        return f"two samples of a prompt draw the same token {more_often(side.excess)} than under these logprobs"
    step, low, high = (100 * part for part in (side.step.value, side.step.low, side.step.high))
    return f"samples of a prompt look like draws with 1/T off by {step:+.1f} % [{low:+.1f} %, {high:+.1f} %]"


def _size(side: Agreement) -> str:
    draws, prompts = counted(side.draws, "draw"), counted(side.prompts, "prompt")
    return f"{draws} in {prompts}, at places where several samples of a prompt have the same beginning"
