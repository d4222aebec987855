"""The meaning of logged tokens that were not scored under other meanings, and of rollouts that no trainer has scored.

Logs convict and rarely acquit. Sampled-token logprobs show a bias (mean ratio) and nothing of what the sampler left
out; top logprobs of both sides show a temperature, those of the engine alone a report that leaves processing out; the
trainer's entropy shows whether the tokens are as sharp as the trainer believes, and with it a filter that is not light.
Only with that can a match be reported, and only if no test would convict with some prompts left out (`resample.py`): no
single row turns a mismatch into a match, or back.

Without a trainer, token ids and one logprob a token decide by samples of one prompt whether the report is of what the
tokens were drawn from. If nothing but a temperature of 1 was requested, raw and processed logprobs are the same; a
report that is off then leaves something out that was not requested.

Not covered: hidden truncation under raw logprobs, and temperature from sampled logprobs alone. Those need scores.
"""

import math
from collections.abc import Sequence

from scipy.special import log_ndtr

from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.from_siblings import Siblings, keeps_odds
from rlaudit.meaning.honesty import ALPHA, GREEDY_EFFECT, MEAN_RATIO_EFFECT, TEMPERATURE_EFFECT
from rlaudit.meaning.log_statistics import (
    constant_shift,
    first_choice_excess,
    one_sidedness,
    sharpness_of,
    temperature_ratio,
)
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, LoggedFigures, Meaning
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.measurement.measure import Measurement
from rlaudit.statistics.resample import FEWEST_SEQUENCES, REACH

SIBLINGS = "the agreement of samples of one prompt"


def meaning_of_logs(
    evidence: TokenEvidence, ratio: Measurement, leaning: Sequence[str] = (), siblings: Siblings | None = None
) -> Meaning:
    """Judge by logs alone.

    ratio: mean ratio - 1 of all tokens. leaning: causes of this layer that would be named only with some prompts left
    out. siblings: what samples of one prompt show.
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
        temperature=temperature_ratio(evidence),
        shift=constant_shift(evidence),
        one_sided=one_sidedness(evidence),
        hanging=tuple(hanging),
        tokens=evidence.tokens,
        sequences=len(evidence.cluster_S),
        siblings=siblings,
    )
    shifted = evidence.alignment is not None and bool(evidence.alignment.refused)
    return _meaning(figures, evidence.sampling, evidence.trainer, shifted)


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
    )
    return _meaning(figures, requested, trainer, shifted=False)


def _meaning(figures: LoggedFigures, requested: Semantics, train: Semantics, shifted: bool) -> Meaning:
    kind = _convicted(figures, requested, shifted) or _open(figures)
    return Meaning(kind, train, train, train, requested, figures)


def _convicted(figures: LoggedFigures, requested: Semantics, shifted: bool) -> Kind | None:
    """Return what convicts first; None if nothing does.

    First a report that the engine's own tokens refute, no matter what the trainer says; then a bias of all three; then
    tokens that the trainer's distribution does not fit.
    """
    first, sharp, ratio = figures.first_choices, figures.sharp, figures.ratio
    if not shifted and first is not None and first.convicts(GREEDY_EFFECT):
        return dishonest(requested, sharper=first.value > 0)
    if not shifted and figures.siblings is not None:
        kind = _by_siblings(figures.siblings, requested, trained=ratio is not None, masses=figures.shift is None)
        if kind is not None:
            return kind
    if ratio is not None and _off(ratio):
        # Prompts that are too few to convict by it are too few to convict by anything else.
        if not _surprising(ratio):
            return Kind.FEW_BIASED
        return Kind.UNEXPLAINED_BIAS if figures.shift is None else Kind.UNEXPLAINED_SHIFT
    if sharp is not None and sharp.convicts(TEMPERATURE_EFFECT, ALPHA):
        return Kind.HIDDEN_SAMPLING
    return None


def dishonest(requested: Semantics, sharper: bool) -> Kind:
    """Name a report that is not of what the tokens were drawn from: raw, if the request moves raw logprobs that way."""
    sharpens = requested.temperature < 1.0 or requested.filtered
    flattens = requested.temperature > 1.0 or requested.penalised
    return Kind.RAW_REPORT if (sharpens if sharper else flattens) else Kind.OTHER_REPORT


def _by_siblings(siblings: Siblings, requested: Semantics, trained: bool, masses: bool) -> Kind | None:
    """Return which of the three differs, by samples of one prompt; None if they convict none.

    trained: whether a trainer scored the tokens. masses: whether its probabilities may add up to 1: not if its logprobs
    are the rollout's plus one number.
    """
    report, trainer = siblings.report, siblings.trainer
    if siblings.off(report):
        as_far = masses and siblings.off(trainer) and siblings.alike if trained else requested == RAW
        if as_far:
            return Kind.HIDDEN_FILTER if keeps_odds(report) else Kind.HIDDEN_SAMPLING
        return dishonest(requested, sharper=report.step.value > 0)
    return Kind.TRAINER if masses and siblings.off(trainer) else None


def _open(figures: LoggedFigures) -> Kind:
    """Return why there is no acquittal although nothing convicts; or that all three agree."""
    if figures.hanging:
        return Kind.HANGING
    if figures.tokens < FEWEST_TOKENS or figures.sequences < FEWEST_SEQUENCES:
        return Kind.FEW
    if figures.ratio is not None and not _unbiased(figures.ratio):
        return Kind.WIDE
    siblings = figures.siblings
    same = siblings is not None and siblings.same(siblings.report)
    if siblings is not None and figures.ratio is not None:
        same = same and siblings.same(siblings.trainer)
    return Kind.AGREE if figures.sharp is not None or same else Kind.UNTOLD


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
