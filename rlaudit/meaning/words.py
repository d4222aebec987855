"""The sentences about a meaning: its cause, the reason, and when it is wrong. Nothing parses them."""

import math
from collections.abc import Sequence

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import FILTERS, RAW, Semantics
from rlaudit.meaning.from_siblings import SAME_STEP, Siblings
from rlaudit.meaning.least_data import OF_A_BIAS
from rlaudit.meaning.limit_words import (
    GROUPS_OR_ENTROPY,
    in_all,
    percent,
    prompts_to_show,
    sentences,
    too_little,
    would_have_shown,
)
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, LoggedFigures, Meaning, ScoredFigures
from rlaudit.meaning.sibling_words import (
    AGREE_OTHERWISE,
    CAUSES,
    LOGGED,
    LOGGED_SHOWS,
    Conclusion,
    believed_of_siblings,
    evidence_of_siblings,
    leaning_of_siblings,
    mismatch_in_siblings,
    more_often,
    what_siblings_leave_open,
    what_would_tell,
    would_have_been_seen,
)
from rlaudit.meaning.token_tests import GREEDY_EFFECT, SemanticTest
from rlaudit.statistics.estimate import Estimate, figure
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.resample import FEWEST_SEQUENCES
from rlaudit.text.counted import counted

UNEXPLAINED = {
    Kind.UNEXPLAINED_BIAS: "unexplained bias",
    Kind.UNEXPLAINED_SHIFT: "unexplained constant shift",
    Kind.OFF_TRAINER: CAUSES[Kind.OFF_TRAINER][0],
}
CANNOT_TELL = (
    "a filter of the sampler was not seen, if the sampler returned raw logprobs: a filter does not change raw logprobs",
    "penalties and logit biases were not seen, if the sampler applied them and both sides' logprobs leave them out",
)
CHOSEN = (
    "it was not seen whether samples were dropped by length, likelihood or ratio after sampling. The remaining samples "
    "would look like this, too"
)
ONE_NUMBER = (
    "it was not seen whether raw or processed logprobs were logged. Here this does not matter: at T=1 without filters "
    "or penalties both are the same numbers"
)
OFF_BY_MORE = (
    "the mean ratio differs from 1 by over 1 %, or --score MODEL shows that a filter cut tokens (support test, p "
    "below 1e-6)"
)
NO_TRAINER = "it was not seen whether the trainer computes the reported logprobs: the table has no trainer logprobs"
WITH_TRAINER = "give the trainer's table as second argument, or --score MODEL"
NOT_WITHOUT = (
    "the sampler's temperature was not seen: record trainer_entropy or top logprobs of both sides, or give --score "
    "MODEL"
)


def conclusion_of(meaning: Meaning) -> Conclusion:
    """Return the sentences about a meaning."""
    figures, differs = meaning.figures, meaning.verdict is Verdict.MISMATCH
    if isinstance(figures, ScoredFigures):
        return _mismatch_in_scores(meaning, figures) if differs else _open_to_scores(meaning, figures)
    if figures.ratio is None and figures.siblings is not None and not differs:
        return _open_to_siblings(meaning, figures, figures.siblings)
    return _mismatch_in_logs(meaning, figures) if differs else _open_to_logs(meaning, figures)


def unseen_by(meaning: Meaning) -> tuple[str, ...]:
    """Say what the data behind a meaning cannot show."""
    figures = meaning.figures
    if isinstance(figures, LoggedFigures):
        if figures.ratio is None:
            return (NO_TRAINER,)
        chosen = (CHOSEN,) if meaning.kind in {Kind.HIDDEN_FILTER, Kind.HIDDEN_SAMPLING} else ()
        # Samples of a prompt show temperatures and filters, up to limits.
        if figures.limits.mass is not None:
            return (*chosen, *(figures.limits.cannot_show or CANNOT_TELL[1:]))
        blind = figures.sharp is None and figures.temperature is None
        unseen_here = (NOT_WITHOUT, *CANNOT_TELL) if blind else CANNOT_TELL
        return (*chosen, *figures.limits.cannot_show, *unseen_here)
    if meaning.kind is Kind.NO_TOKENS:
        return ("nothing was seen, since no token was scored",)
    unseen = []
    if meaning.requested == RAW:
        unseen.append(ONE_NUMBER)
    silent = [test.name for test in figures.tests if test.filter and test.ln_p == 0.0]
    if silent and not figures.sample_differs:
        unseen.append(f"a filter that cuts too little to show in these tokens was not seen ({', '.join(silent)})")
    biases = "other logit biases" if meaning.requested.logit_bias else "logit bias"
    unseen.append(f"{biases}, bad words and grammars were not tested as reasons for a mismatch")
    if figures.sample.best.penalised or figures.report.best.penalised:
        unseen.append("penalties were tested only at 1.05, 1.1, 1.2 and as requested")
    return tuple(unseen)


def hanging(names: Sequence[str]) -> str:
    """Say that a few prompts decide whether a cause is named."""
    return f"no cause is named, since a few prompts decide whether {' and '.join(names)} shows"


def ratio_line(ratio: Measurement) -> str:
    """Return the mean ratio of all tokens."""
    return (
        f"mean ratio - 1 is {figure(ratio.value, ratio.low, ratio.high)} ({_size_of(ratio.tokens, ratio.sequences)} of "
        f"{counted(ratio.clusters, 'prompt')})"
    )


def _mismatch_in_scores(meaning: Meaning, figures: ScoredFigures) -> Conclusion:
    match meaning.kind:
        case Kind.RAW_REPORT | Kind.OTHER_REPORT:
            return _misreported(meaning, figures)
        case Kind.TRAINER:
            return _trainer(meaning, figures)
        case Kind.HIDDEN_FILTER | Kind.HIDDEN_SAMPLING | Kind.LEFT_OUT:
            return _hidden(meaning, figures)
        case _:
            return Conclusion(
                UNEXPLAINED[meaning.kind],
                f"{_test_line(figures.tests[0])}: the reported logprobs are not the sampler's, and none of the "
                f"{figures.tried} combinations of sampling parameters that were tried explains them",
                "the mean ratio is 1 on a new batch, or other sampling parameters than those tried halve the misfit",
            )


def _open_to_scores(meaning: Meaning, figures: ScoredFigures) -> Conclusion:
    train, report = meaning.theta_train, figures.report
    size = _size_of(figures.tokens, figures.sequences)
    match meaning.kind:
        case Kind.BETTER_FIT:
            return Conclusion(
                None,
                f"the reported logprobs fit {_fits(report.best, report.loss)} better than "
                f"{_fits(train, report.trainer_loss)}, but the interval of the gain includes 0 ({size})",
                "more prompts give an interval that excludes 0",
            )
        case Kind.HANGING:
            names = [str(test.name) for test in figures.tests if test.leans]
            if figures.sample.gains_some:
                names.append("the likelihood of the tokens")
            return Conclusion(None, f"{hanging(names)} ({size})", "more prompts give the same result")
        case Kind.UNTOLD:
            return Conclusion(
                None,
                f"{meaning.requested.describe()} was requested, but reported logprobs and trainer follow "
                f"{train.describe()}; the tokens do not show which of these two the sampler used ({size})",
                "more tokens, or a larger difference in "
                f"{' and '.join(meaning.requested.differences(train))}, show which",
            )
        case Kind.FEW:
            return Conclusion(
                None,
                f"nothing shows a mismatch, but {size} are too few to rule one out (needed: {FEWEST_TOKENS} tokens in "
                f"{FEWEST_SEQUENCES} sequences)",
                "more tokens show a mismatch",
            )
        case Kind.NO_TOKENS:
            return Conclusion(None, "there are no tokens")
        case _:
            same = " (at T=1 without filters or penalties raw and processed logprobs are the same numbers)"
            return Conclusion(
                None,
                f"reported logprobs, tokens and trainer agree on {train.describe()}"
                f"{same if meaning.requested == RAW == train else ''}. None of {len(figures.tests)} tests shows a "
                "difference "
                f"({_test_line(figures.tests[0])}; {size})",
                "on new tokens the mean ratio differs from 1 by over 1 %, other sampling parameters halve the "
                "misfit, or a support test shows a filter (p below 1e-6)",
            )


def _misreported(meaning: Meaning, figures: ScoredFigures) -> Conclusion:
    theta, train = meaning.theta_report, meaning.theta_train
    drawn = _drawn(meaning, figures, meaning.theta_sample if figures.sample_differs else train)
    name = (
        "raw logprobs: reported at T=1 before any processing"
        if meaning.kind is Kind.RAW_REPORT
        else f"misreported logprobs: reported at {theta.describe()}"
    )
    strongest = _strongest_line(figures)
    tokens = f"; {strongest}" if strongest else ""
    return Conclusion(
        f"{name}, sampled at {drawn}",
        f"{_figures_line(meaning, figures)}{tokens}",
        f"on new tokens {theta.name} does not fit twice as well as {train.name}",
    )


def _trainer(meaning: Meaning, figures: ScoredFigures) -> Conclusion:
    theta, train = meaning.theta_report, meaning.theta_train
    apart = theta.differences(train, tolerance=0.0)
    filters = [name for name in apart if name in FILTERS]
    what = "filters" if len(filters) == len(apart) else " and ".join(apart)
    verb = "differs" if len(apart) == 1 and not filters else "differ"
    tokens = "tokens are sampled and reported" if figures.sample_differs else "tokens are reported"
    unsure = (
        "" if figures.sample_differs else " (the tokens alone do not show which side's parameters they were drawn with)"
    )
    return Conclusion(
        f"the trainer's {what} {verb} from the sampler's: {tokens} at {theta.describe()}, but the trainer uses "
        f"{train.describe()}",
        f"{_figures_line(meaning, figures)}{unsure}",
        f"applying {theta.name} to the trainer's logits does not halve the misfit",
    )


def _hidden(meaning: Meaning, figures: ScoredFigures) -> Conclusion:
    words = [_strongest_line(figures)] if figures.on_tokens else []
    at, requested = "", meaning.requested
    as_trained = not requested.differences(meaning.theta_train)
    as_drawn = not requested.differences(meaning.theta_sample) if figures.sample.differs else not as_trained
    if as_drawn:
        origin = "as requested"
    else:
        origin = "not in the request" if as_trained else f"not as requested ({requested.name})"
    if figures.sample.differs:
        drawn, gain, ln_p = meaning.theta_sample, figures.sample.gain, figures.sample.ln_p
        words.append(f"the tokens fit {drawn.name} better by {gain:.3g} nats per token, {_p_value(ln_p)}")
        sampler = _drawn(meaning, figures, drawn)
        at = f": tokens are sampled at {sampler}, but the trainer uses {meaning.theta_train.describe()}"
    words.append(_size_of(figures.tokens, figures.sequences))
    kind = "truncation" if meaning.kind is Kind.HIDDEN_FILTER else "sampling parameters"
    return Conclusion(
        f"hidden {kind}{at}",
        f"{kind} {origin}, which neither the reported nor the trainer's logprobs have ({'; '.join(words)})",
        "tokens sampled with every parameter written out (generation_config=vllm) show the same",
    )


def _drawn(meaning: Meaning, figures: ScoredFigures, drawn: Semantics) -> str:
    """Return the sampler's meaning in words; if it was not requested, as exact as the tokens tell."""
    if not drawn.differences(meaning.requested) or not drawn.differences(meaning.theta_train):
        return drawn.describe()
    seen = figures.at_the_edge(drawn)
    return f"about {seen.describe()}" if drawn.penalised or seen != drawn else drawn.describe()


def _strongest_line(figures: ScoredFigures) -> str:
    test = figures.strongest
    return f"{test.name}: {_p_value(test.ln_p)}, estimated {test.estimate_of} {test.estimate:.3g}" if test else ""


def _fits(meaning: Semantics, loss: float) -> str:
    return f"{meaning.name} (misfit {loss:.2g})"


def _figures_line(meaning: Meaning, figures: ScoredFigures) -> str:
    fit = figures.report
    return (
        f"the reported logprobs fit {_fits(meaning.theta_report, fit.loss)} and not the trainer's "
        f"{_fits(meaning.theta_train, fit.trainer_loss)}; a misfit of 0 is exact ({_test_line(figures.tests[0])}; "
        f"{_size_of(figures.tokens, figures.sequences)})"
    )


def _size_of(tokens: int, sequences: int) -> str:
    return f"{counted(tokens, 'token')} in {counted(sequences, 'sequence')}"


def _test_line(test: SemanticTest) -> str:
    return f"mean ratio - 1 = {test.estimate:+.3g}, {_p_value(test.ln_p)}"


def _p_value(ln_p: float) -> str:
    if ln_p > math.log(1e-3):
        return f"p = {math.exp(ln_p):.2g}"
    return f"p = 1e{ln_p / math.log(10):.0f}"


def _mismatch_in_logs(meaning: Meaning, figures: LoggedFigures) -> Conclusion:
    first, siblings = figures.first_choices, figures.siblings
    by_first = meaning.kind.misreports or meaning.kind in {Kind.HIDDEN_SAMPLING, Kind.LEFT_OUT}
    if by_first and first is not None and first.shows(GREEDY_EFFECT):
        return _mismatch_in_first_choices(meaning, first)
    if siblings is not None and siblings.off_a_side and meaning.kind in CAUSES:
        return mismatch_in_siblings(meaning.kind, siblings)
    biased = "" if figures.ratio is None else ratio_line(figures.ratio)
    match meaning.kind:
        case Kind.UNEXPLAINED_SHIFT:
            return Conclusion(
                UNEXPLAINED[meaning.kind],
                f"{biased}: {_shape(figures)}",
                "on a new batch the log ratio differs from token to token",
                "compare the normalisers of both sides for one token: padded vocabulary, base of the logarithm, an "
                "offset",
            )
        case Kind.UNEXPLAINED_BIAS:
            return Conclusion(
                UNEXPLAINED[meaning.kind],
                f"{biased}: {_biased_side(figures)}; {_shape(figures)}",
                "the mean ratio is 1 on a new batch",
                "score a sample with --score MODEL: this shows which meaning the reported logprobs follow",
            )
        case _:
            assert figures.sharp is not None
            step = figures.sharp.inverse_step
            cause, following = CAUSES[meaning.kind]
            hidden = meaning.kind is Kind.HIDDEN_SAMPLING
            whose = {
                Kind.HIDDEN_SAMPLING: "the sampler uses another temperature, or a filter",
                Kind.LEFT_OUT: f"{meaning.requested.name} was requested, and both sides' logprobs leave the penalty "
                "out",
            }.get(meaning.kind, "the reported logprobs show the same")
            return Conclusion(
                cause,
                f"likely tokens were drawn {'more' if step > 0 else 'less'} often than the trainer's distribution "
                "says, as at "
                f"{1 / max(0.1, 1 + step):.2f} times the trainer's temperature: {whose}",
                "tokens sampled with every parameter written out (generation_config=vllm) show the same",
                "score a sample with --score MODEL: the support tests tell temperature and filters apart"
                if hidden
                else following,
            )


def _off(kind: Kind, figures: LoggedFigures, size: str) -> Conclusion:
    if kind is Kind.COPIED:
        return Conclusion(
            None,
            "samples of a prompt agree for longer than separate draws do: copied rows, one seed for all, a greedy "
            f"sampler under any report, or words that were not drawn ({size})",
            next="sample with a seed per sample, leave the copies out, and mask inserted words (loss_mask 0)",
        )
    off = " and ".join(figures.off)
    return Conclusion(
        None,
        f"no cause is named, but {off} {'is' if len(figures.off) == 1 else 'are'} off by more than chance "
        f"makes in 19 logs of 20 ({size})",
        next=f"take {_twice(figures)}: then a cause is named, or the figure falls back",
    )


def _open_to_logs(meaning: Meaning, figures: LoggedFigures) -> Conclusion:
    size = _size_of(figures.tokens, figures.sequences)
    match meaning.kind:
        case Kind.FEW_BIASED if figures.ratio is not None:
            return Conclusion(
                None,
                f"{ratio_line(figures.ratio)}: {'a few decide it' if figures.ratio.reliable else 'too few to tell'}; "
                f"{_shape(figures)}",
                next="take more prompts, since a few of them decide"
                if figures.ratio.reliable
                else f"take more tokens: at least {OF_A_BIAS.prompts} prompts in {OF_A_BIAS.sequences} sequences",
            )
        case Kind.HANGING:
            return Conclusion(None, hanging(figures.hanging), next=f"take {_twice(figures)} to settle this")
        case Kind.COPIED | Kind.LEANING:
            return _off(meaning.kind, figures, size)
        case Kind.FEW | Kind.WIDE | Kind.UNTOLD:
            return _too_little(figures, size)
        case Kind.NOTHING:
            return Conclusion(
                None,
                f"nothing shows a mismatch ({size}). {would_have_shown(figures.limits)}",
                OFF_BY_MORE,
                _more_than_nothing(figures),
            )
        case _:
            return Conclusion(
                None,
                f"reported logprobs are right on average, and likely tokens were drawn as often as "
                f"{_believed(figures)} ({size})",
                OFF_BY_MORE,
            )


def _too_little(figures: LoggedFigures, size: str) -> Conclusion:
    """Say that nothing shows, what would have, and how much more data settles it."""
    needed = list(too_little(figures.limits, figures.prompts, figures.sequences))
    if figures.tokens < FEWEST_TOKENS or figures.sequences < FEWEST_SEQUENCES:
        needed.insert(0, f"take at least {FEWEST_TOKENS} tokens in {FEWEST_SEQUENCES} sequences")
    seen = would_have_shown(figures.limits)
    return Conclusion(
        None,
        f"{size} show no mismatch, but they are too few to rule one out{f'. {seen}' if seen else ''}",
        next=sentences([*needed, f"or {LOGGED_SHOWS}"] if figures.sharp is None else needed),
    )


def _twice(figures: LoggedFigures) -> str:
    return f"twice as many prompts like these ({2 * figures.prompts})"


def _more_than_nothing(figures: LoggedFigures) -> str:
    """Say what these columns cannot show, and which would; or how much more data shows smaller deviations."""
    limits, siblings = figures.limits, figures.siblings
    if limits.cannot_show:
        unseen = limits.cannot_show[0]
        if siblings is not None and not siblings.broken:
            return f"to reach MATCH, {what_would_tell(siblings)}. Without this, {unseen}"
        return f"{GROUPS_OR_ENTROPY if limits.inverse_temperature is None else LOGGED}. Without this, {unseen}"
    needed = prompts_to_show(figures.prompts, limits.inverse_temperature, SAME_STEP)
    return f"take {in_all(needed, figures.prompts)}: a temperature off by {percent(SAME_STEP)} would then show"


def _open_to_siblings(meaning: Meaning, figures: LoggedFigures, siblings: Siblings) -> Conclusion:
    """Say what is open about rollouts that no trainer has scored."""
    size = _size_of(figures.tokens, figures.sequences)
    match meaning.kind:
        case Kind.HANGING:
            return Conclusion(None, hanging(figures.hanging), next=f"take {_twice(figures)} to settle this")
        case Kind.NOTHING:
            return Conclusion(
                None,
                f"the tokens do not contradict the reported logprobs ({size}). {would_have_shown(figures.limits)}",
                AGREE_OTHERWISE,
                WITH_TRAINER,
            )
        case Kind.AGREE:
            return Conclusion(
                None,
                f"tokens were drawn from the reported distribution ({size}): {would_have_been_seen(siblings)}",
                AGREE_OTHERWISE,
                WITH_TRAINER,
            )
        case Kind.UNTOLD:
            return Conclusion(
                None,
                f"{leaning_of_siblings(siblings)} ({size}){what_siblings_leave_open(siblings)}",
                next=sentences((*too_little(figures.limits, figures.prompts, figures.sequences), f"or {LOGGED_SHOWS}")),
            )
        case _:
            return _open_to_logs(meaning, figures)


def _mismatch_in_first_choices(meaning: Meaning, excess: Estimate) -> Conclusion:
    cause, step = CAUSES[meaning.kind]
    and_this = {
        Kind.RAW_REPORT: f". Raw logprobs of tokens sampled at {meaning.requested.name} look like this"
        if meaning.requested != RAW
        else ", and the mean ratio is above 1, as if the reported logprobs left out the trainer's temperature",
        Kind.HIDDEN_SAMPLING: ", and the trainer's logprobs agree with the reported ones",
        Kind.LEFT_OUT: f". The penalty of {meaning.requested.name}, which both sides' logprobs leave out, looks like "
        "this",
    }.get(meaning.kind, "")
    return Conclusion(
        cause,
        f"the likeliest token is sampled {more_often(excess)} than its reported logprob says{and_this}",
        f"with processed logprobs, the likeliest token is still sampled {more_often(excess)} than reported",
        step,
    )


def _believed(figures: LoggedFigures) -> str:
    if figures.sharp is not None or figures.siblings is None:
        return "the trainer's distribution says"
    return believed_of_siblings(figures.siblings)


def _biased_side(figures: LoggedFigures) -> str:
    """Say which side a biased mean ratio speaks against: below 1 it may be either."""
    if figures.ratio is not None and (figures.ratio.value or 0.0) > 0:
        return "the reported logprobs are not those of the sampler"
    return (
        "the reported logprobs are not the sampler's, or the sampler filters or bans tokens to which the trainer gives "
        "probability"
    )


def _shape(figures: LoggedFigures) -> str:
    """Say what the log ratios of a biased table look like."""
    if figures.shift is None:
        share = 100 * (figures.one_sided or 0.0)
        return f"{share:.0f} % of the squared difference is in tokens that the trainer finds less likely"
    return f"at every token, the trainer's logprob is the reported one {figures.shift:+.3g} nats; no sampler does that"


def evidence_of_logs(figures: LoggedFigures) -> tuple[str, ...]:
    """Return the figures, each in a line."""
    lines = [] if figures.ratio is None else [ratio_line(figures.ratio)]
    if figures.sharp is not None:
        lines.append(
            f"the sampler's 1/T, estimated from the trainer's entropy, is "
            f"{100 * abs(figures.sharp.inverse_step):.2f} % "
            f"{'above' if figures.sharp.inverse_step > 0 else 'below'} the reported 1/T "
            f"({abs(figures.sharp.score.score):.1f} standard errors)"
        )
    factor = figures.temperature
    if factor is not None:
        lines.append(
            f"the trainer's temperature, estimated from the top logprobs of both sides, is {factor.value:.3f} "
            f"[{factor.low:.3f}, {factor.high:.3f}] times the reported temperature"
        )
    return (*lines, *evidence_of_siblings(figures.siblings))
