"""The meaning of logged tokens that were not scored under other meanings, and of rollouts that no trainer has scored.

Logs name causes and rarely show that nothing is wrong. Sampled-token logprobs show a bias (mean ratio) and nothing of
what the sampler left out; top logprobs of both sides show a temperature, those of the engine alone a report that leaves
processing out; the trainer's entropy shows whether the tokens are as sharp as the trainer believes, and with it a
filter that is not light.
Only with that can a match be reported, only if a deviation that matters would have been seen with these data, and only
if no test would show one with some prompts left out (`resample.py`): no single row turns a mismatch into a match, or
back. Without it nothing is found, up to limits that are stated (`limits.py`), if the data are enough for them.

Without a trainer, token ids and one logprob a token decide by samples of one prompt whether the report is of what the
tokens were drawn from. If nothing but a temperature of 1 was requested, raw and processed logprobs are the same; a
report that is off then leaves something out that was not requested.

Not covered: hidden truncation under raw logprobs, and temperature from sampled logprobs alone. Those need scores.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy.special import log_ndtr

from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.candidates import RAW, Semantics, flattening_left_out
from rlaudit.meaning.from_siblings import (
    SAME_STEP,
    SPOILED,
    Siblings,
    apart_of,
    keeps_odds,
    nearer_each_other,
    smallest_of,
)
from rlaudit.meaning.limits import (
    LARGEST_MASS,
    LARGEST_MEAN_RATIO,
    LARGEST_SHIFTED,
    LARGEST_STEP,
    Limits,
    error_of,
    first_choices_limit,
    mass_limit,
    mean_ratio_limit,
    sharpness_limit,
    shifted_limit,
    siblings_limit,
    suspicious,
)
from rlaudit.meaning.log_ratio_shape import follows_mask, follows_temperature
from rlaudit.meaning.log_statistics import (
    constant_shift,
    first_choice_excess,
    one_sidedness,
    reported_step,
    sharpness_of,
    temperature_ratio,
)
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, LoggedFigures, Meaning
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.token_tests import ALPHA, GREEDY_EFFECT, MEAN_RATIO_EFFECT, TEMPERATURE_EFFECT
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.resample import FEWEST_SEQUENCES, REACH

# Of the sharpness of the tokens: a report that has more of it is theirs, one that has less is the trainer's.
THEIRS = 0.5
# What takes the trainer's entropies or samples of one prompt to see.
BOTH_SIDES = "a temperature or filter of the sampler stays unseen if both sides' logprobs leave it out"
# What samples of one prompt do not show, who rank only what was drawn.
LEFT_OUT_ALIKE = (
    "a top-k or min-p stays unseen if it cuts only uncertain contexts, and so does a penalty or logit bias that both "
    "sides' logprobs leave out"
)
SIBLINGS = "the agreement of samples of one prompt"


def meaning_of_logs(
    evidence: TokenEvidence,
    ratio: Measurement,
    leaning: Sequence[str] = (),
    siblings: Siblings | None = None,
    shifted: tuple[int, int] | None = None,
) -> Meaning:
    """Judge by logs alone.

    ratio: mean ratio - 1 of all tokens. leaning: causes of this layer that would be named only with some prompts left
    out. siblings: what samples of one prompt show. shifted: how many sequences of the whole log are, of how many.
    """
    first, sharp = first_choice_excess(evidence), sharpness_of(evidence)
    hanging = list(leaning)
    if first is not None and first.leans(GREEDY_EFFECT):
        hanging.append("the share of first choices")
    if sharp is not None and sharp.leans(TEMPERATURE_EFFECT, ALPHA):
        hanging.append("the sharpness of the tokens")
    if siblings is not None and siblings.lean:
        hanging.append(SIBLINGS)
    figures = LoggedFigures(
        ratio=ratio,
        first_choices=first,
        sharp=sharp,
        reported_step=reported_step(evidence),
        k2=evidence.k2,
        apart=apart_of(evidence.log_ratio_T),
        temperature=temperature_ratio(evidence),
        shift=constant_shift(evidence),
        one_sided=one_sidedness(evidence),
        hanging=tuple(hanging),
        tokens=evidence.tokens,
        sequences=len(evidence.cluster_S),
        siblings=siblings,
        recomputed=follows_temperature(evidence) or follows_mask(evidence),
        prompts=evidence.clusters,
    )
    limits = limits_of(figures, evidence.sampling.temperature)
    if shifted is not None:
        limits = replace(limits, shifted=shifted_limit(shifted[1], shifted[0]))
    figures = replace(figures, limits=limits, off=_off_unnamed(figures))
    refused = evidence.alignment is not None and bool(evidence.alignment.refused)
    return _meaning(figures, evidence.sampling, evidence.trainer, refused)


def meaning_of_rollouts(
    siblings: Siblings, tokens: int, sequences: int, requested: Semantics, trainer: Semantics
) -> Meaning:
    """Judge rollouts that no trainer has scored. trainer: what the trainer should compute."""
    figures = LoggedFigures(
        ratio=None,
        first_choices=None,
        sharp=None,
        temperature=None,
        shift=None,
        one_sided=None,
        hanging=(SIBLINGS,) if siblings.lean else (),
        tokens=tokens,
        sequences=sequences,
        siblings=siblings,
        prompts=siblings.report.prompts,
    )
    figures = replace(figures, limits=limits_of(figures, requested.temperature), off=_off_unnamed(figures))
    return _meaning(figures, requested, trainer, shifted=False)


def _meaning(figures: LoggedFigures, requested: Semantics, train: Semantics, shifted: bool) -> Meaning:
    kind = _mismatch(figures, requested, shifted) or _open(figures)
    if kind is Kind.HIDDEN_SAMPLING and flattening_left_out(requested, train) and not _sharper(figures):
        kind = Kind.LEFT_OUT
    return Meaning(kind, train, train, train, requested, figures)


def _mismatch(figures: LoggedFigures, requested: Semantics, shifted: bool) -> Kind | None:
    """Return the first mismatch that shows; None if none does.

    First a report that the engine's own tokens rule out, no matter what the trainer says; then a bias of all three;
    then tokens that the trainer's distribution does not fit.
    """
    ratio = figures.ratio
    kind = None if shifted else _by_first_choices(figures, requested) or _by_siblings(figures, requested)
    if kind is not None:
        return kind
    if ratio is not None and _off(ratio):
        # Prompts that are too few to show it are too few to show anything else.
        if not _surprising(ratio):
            return Kind.FEW_BIASED
        return Kind.UNEXPLAINED_BIAS if figures.shift is None else Kind.UNEXPLAINED_SHIFT
    return _by_sharpness(figures)


def _by_first_choices(figures: LoggedFigures, requested: Semantics) -> Kind | None:
    first = figures.first_choices
    if first is None or not first.shows(GREEDY_EFFECT):
        return None
    if nearer_each_other(figures.apart, first.value):
        return Kind.HIDDEN_SAMPLING
    return misreported(requested, sharper=first.value > 0, left_out=_too_high(figures))


def _by_sharpness(figures: LoggedFigures) -> Kind | None:
    """Return who differs if tokens are not as sharp as the trainer believes: the mean ratio does not leave 1."""
    sharp, own = figures.sharp, figures.reported_step
    if sharp is None or not sharp.shows(TEMPERATURE_EFFECT, ALPHA):
        return None
    if figures.recomputed and not _report_suspected(figures.siblings):
        return Kind.TRAINER
    return Kind.OFF_TRAINER if own is not None and own / sharp.inverse_step > THEIRS else Kind.HIDDEN_SAMPLING


def _report_suspected(siblings: Siblings | None) -> bool:
    """Return whether samples of one prompt contradict a report that would be of what the tokens were drawn from."""
    if siblings is None or not siblings.whole:
        return False
    step = siblings.report.step
    return suspicious(step.value, error_of(step), siblings.report.prompts, TEMPERATURE_EFFECT)


def _too_high(figures: LoggedFigures) -> bool:
    """Return whether the mean ratio is surely above 1: the report leaves out what the trainer computes.

    What it leaves out moves each token by another amount: one difference at every token is none of it.
    """
    low = (figures.ratio.low if figures.ratio is not None else None) or 0.0
    return low > MEAN_RATIO_EFFECT and figures.k2 > math.log1p(low) ** 2


def misreported(requested: Semantics, sharper: bool, left_out: bool = False) -> Kind:
    """Name a report that is not of what the tokens were drawn from: raw, if the request moves raw logprobs that way.

    left_out: whether the mean ratio is above 1, as if the trainer had a temperature that the report leaves out.
    """
    sharpens = requested.temperature < 1.0 or requested.filtered or left_out
    flattens = requested.temperature > 1.0 or requested.penalised
    return Kind.RAW_REPORT if (sharpens if sharper else flattens) else Kind.OTHER_REPORT


def _sharper(figures: LoggedFigures) -> bool:
    """Return whether tokens are sharper than is reported, by the first figure that shows that they are not as sharp."""
    first, siblings, sharp = figures.first_choices, figures.siblings, figures.sharp
    if first is not None and first.shows(GREEDY_EFFECT):
        return first.value > 0
    if siblings is not None and siblings.off(siblings.report):
        return siblings.report.step.value > 0
    return sharp is not None and sharp.inverse_step > 0


def _by_siblings(figures: LoggedFigures, requested: Semantics) -> Kind | None:
    """Return which of the three differs, by samples of one prompt; None if they show none."""
    siblings = figures.siblings
    if siblings is None:
        return None
    report, trainer, trained = siblings.report, siblings.trainer, figures.ratio is not None
    # The trainer's probabilities may not add up to 1 if its logprobs are the rollout's plus one number.
    masses = figures.shift is None
    if siblings.off(report):
        as_far = masses and siblings.alike if trained else requested == RAW
        if as_far:
            return Kind.HIDDEN_FILTER if keeps_odds(report) else Kind.HIDDEN_SAMPLING
        return misreported(requested, sharper=report.step.value > 0, left_out=_too_high(figures))
    if not (masses and siblings.off(trainer)):
        return None
    return Kind.TRAINER if figures.recomputed else Kind.OFF_TRAINER


def _open(figures: LoggedFigures) -> Kind:
    """Return why nothing can be said although nothing is named; or that all three agree, or that nothing was found."""
    limits = figures.limits
    step, ratio, shifted = limits.inverse_temperature, limits.mean_ratio, limits.shifted
    unbiased = figures.ratio is None or _unbiased(figures.ratio)
    untold = (step is None and figures.ratio is None) or (step is not None and step > LARGEST_STEP)
    cut = figures.sharp is None and limits.mass is not None and _may_be_cut(figures) > LARGEST_MASS
    holds = {
        Kind.HANGING: bool(figures.hanging),
        Kind.FEW: figures.tokens < FEWEST_TOKENS or figures.sequences < FEWEST_SEQUENCES,
        Kind.AGREE: unbiased and (_as_sharp(figures) or _same_siblings(figures)),
        Kind.WIDE: figures.ratio is not None and (ratio is None or ratio > LARGEST_MEAN_RATIO),
        Kind.COPIED: figures.siblings is not None and Broken.COPIES in figures.siblings.broken,
        Kind.LEANING: bool(figures.off),
        Kind.UNTOLD: untold or cut or (shifted is not None and shifted > LARGEST_SHIFTED),
    }
    return next((kind for kind, is_so in holds.items() if is_so), Kind.NOTHING)


def _may_be_cut(figures: LoggedFigures) -> float:
    """Return the mass that a filter may have cut: what would not have shown, or what its interval leaves if less."""
    assert figures.siblings is not None and figures.limits.mass is not None
    return min(figures.limits.mass, smallest_of(figures.siblings.sides.values()).mass)


def _as_sharp(figures: LoggedFigures) -> bool:
    """Return whether the trainer's entropies would have shown a deviation that matters."""
    return figures.sharp is not None and figures.sharp.within(SAME_STEP)


def _same_siblings(figures: LoggedFigures) -> bool:
    siblings = figures.siblings
    if siblings is None or not siblings.same(siblings.report):
        return False
    return figures.ratio is None or siblings.same(siblings.trainer)


def limits_of(figures: LoggedFigures, temperature: float) -> Limits:
    """Return what these figures would have shown. temperature: of the request."""
    steps = [siblings_limit(figures.siblings)]
    if figures.sharp is not None:
        steps.append(sharpness_limit(figures.sharp))
    step = min((step for step in steps if step is not None), default=None)
    limits = Limits(
        mean_ratio=None if figures.ratio is None else mean_ratio_limit(figures.ratio),
        inverse_temperature=step,
        # A sampler so much hotter has its 1/T so much lower.
        temperature=None if step is None or step >= 1.0 else temperature * step / (1.0 - step),
        first_choices=None
        if figures.first_choices is None
        else first_choices_limit(figures.first_choices, figures.prompts),
    )
    siblings = figures.siblings
    if step is None and figures.ratio is not None:
        limits = replace(limits, cannot_show=(BOTH_SIDES,))
    if siblings is None or siblings.broken:
        return limits
    smallest = smallest_of(siblings.sides.values())
    return replace(
        limits,
        mass=mass_limit(siblings),
        cannot_show=limits.cannot_show if figures.sharp is not None else (LEFT_OUT_ALIKE,),
        top_p=smallest.top_p if smallest.top_p > 0 else None,
        min_p=smallest.min_p if smallest.min_p < 1 else None,
        top_k=smallest.top_k if smallest.top_k > 1 else None,
    )


def _off_unnamed(figures: LoggedFigures) -> tuple[str, ...]:
    """Return what is off without being named: too unsure for a verdict, and no sign that nothing is wrong."""
    off = []
    ratio, sharp, first, siblings = figures.ratio, figures.sharp, figures.first_choices, figures.siblings
    if ratio is not None and ratio.low is not None and ratio.high is not None:
        least = MEAN_RATIO_EFFECT / 2.0
        if ratio.low > least or ratio.high < -least:
            off.append("the mean ratio")
    if sharp is not None:
        # Noise flattens, which is no temperature.
        least = TEMPERATURE_EFFECT + (sharp.noise if sharp.inverse_step < 0.0 else 0.0)
        if suspicious(sharp.inverse_step, sharp.error, sharp.clusters, least):
            off.append("the sharpness of the tokens")
    if first is not None and suspicious(first.value, error_of(first), figures.prompts, GREEDY_EFFECT):
        off.append("the share of first choices")
    # A choice among samples sharpens them, which is a reason to name nothing, and none to find nothing.
    if siblings is not None and not SPOILED & set(siblings.broken) - {Broken.GAPS}:
        steps = [side.step for side in siblings.sides.values() if side.step.value > 0 or not siblings.broken]
        units = siblings.report.prompts
        if any(suspicious(step.value, error_of(step), units, TEMPERATURE_EFFECT) for step in steps):
            off.append(SIBLINGS)
    return tuple(off)


def _z(ratio: Measurement) -> float:
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return 0.0
    if ratio.high <= ratio.low:
        return math.copysign(math.inf, ratio.value)  # all prompts agree; what rounding moves is in the interval
    # Student's reach for few prompts is in the interval already, so a normal reading of it is conservative.
    return ratio.value * 2 * REACH / (ratio.high - ratio.low)


def _off(ratio: Measurement) -> bool:
    """Return whether the whole interval is off 1 to one side. It holds the value without any single prompt."""
    low, high = ratio.low or 0.0, ratio.high or 0.0
    return low > MEAN_RATIO_EFFECT or high < -MEAN_RATIO_EFFECT


def _surprising(ratio: Measurement) -> bool:
    ln_p = math.log(2.0) + float(log_ndtr(-abs(_z(ratio))))
    return ln_p < math.log(ALPHA) and ratio.reliable


def _unbiased(ratio: Measurement) -> bool:
    inside = ratio.low is not None and ratio.high is not None
    return inside and max(abs(ratio.low or 0.0), abs(ratio.high or 0.0)) <= MEAN_RATIO_EFFECT
