"""How the causes of the semantic layer show, as signatures with sizes: in a meaning from scores, or in logs alone.

A meaning may have several causes: a trainer that forgot temperature and filters has forgotten both.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rlaudit.causes.attribution.cause import LEAST_SHARE, Signature
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import FILTERS, PENALTIES
from rlaudit.meaning.log_statistics import first_choice_excess, removed_by_temperature, seen_shift, temperature_ratio
from rlaudit.meaning.meaning import Kind, Meaning, ScoredFigures
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.token_tests import GREEDY_EFFECT, TEMPERATURE_EFFECT
from rlaudit.meaning.words import conclusion_of
from rlaudit.statistics.estimate import Estimate
from rlaudit.statistics.resample import chance_above, standard_score

RAW_LOGPROBS = "raw-logprobs"
TRAINER_TEMPERATURE = "trainer-temperature"
FILTERS_NOT_REPLAYED = "filters-not-replayed"
HIDDEN_TRUNCATION = "hidden-truncation"
PENALTY = "penalty"
# Nats: what a repetition penalty of 1.02 takes from a logit of 1.
LEAST_SHIFT = 0.02
# Of the squares of the difference of two lists, and of the difference of a typical pair. Temperatures alone and under
# rounding: 0.97 and more of both; beside older weights or loud noise 0.43 to 0.7 of the squares; other weights,
# penalties: below 0.3 of both (simulated, 2026-11).
LEAST_REMOVED, MOST_REMOVED = 0.4, 0.5
# A 99.9 % interval spans this many standard errors.
SPAN = 6.581


@dataclass(frozen=True)
class SemanticNames:
    """The causes behind a meaning: by what the numbers report, and by what the tokens follow."""

    by_report: frozenset[str] = frozenset()
    by_tokens: frozenset[str] = frozenset()

    @property
    def in_order(self) -> tuple[str, ...]:
        """All of them, in the order in which a comparison names them."""
        return tuple(sorted(self.by_report | self.by_tokens))


def semantic_names(meaning: Meaning, figures: ScoredFigures) -> SemanticNames:
    """Return the causes of a mismatch; none of any other verdict."""
    train, sample, requested = meaning.theta_train, meaning.theta_sample, meaning.requested
    if meaning.verdict is not Verdict.MISMATCH:
        return SemanticNames()
    if meaning.kind is Kind.TRAINER:
        return SemanticNames(by_report=causes_of_parameters(meaning.theta_report.differences(train, tolerance=0.0)))
    hidden = frozenset({HIDDEN_TRUNCATION}) if figures.cut else frozenset()
    if meaning.kind.misreports:
        beyond = sample.filtered and not train.filtered and not meaning.theta_report.filtered
        beyond = beyond and figures.sample.differs
        return SemanticNames(frozenset({RAW_LOGPROBS}), hidden if beyond else frozenset())
    if figures.sample.differs and "temperature" in sample.differences(train) and not sample.filtered:
        # Reported and recomputed at one temperature, sampled at another that was requested: both sides left it out.
        was_requested = abs(sample.temperature / requested.temperature - 1) < TEMPERATURE_EFFECT
        both = was_requested and requested.temperature != train.temperature
        return SemanticNames(by_tokens=frozenset({RAW_LOGPROBS, TRAINER_TEMPERATURE}) if both else frozenset())
    if figures.sample.differs and (sample.penalised or sample.logit_bias):
        return SemanticNames(by_tokens=frozenset({PENALTY}))
    return SemanticNames(by_tokens=hidden)


def causes_of_parameters(apart: Iterable[str]) -> frozenset[str]:
    """Return the causes of a report that differs from the trainer's meaning in these parameters."""
    changed_logits = dict.fromkeys((*PENALTIES, "logit_bias"), PENALTY)
    causes = {**dict.fromkeys(FILTERS, FILTERS_NOT_REPLAYED), **changed_logits}
    return frozenset(causes.get(parameter, TRAINER_TEMPERATURE) for parameter in apart)


def semantic_signature(evidence: TokenEvidence, name: str) -> Signature:
    """Return the signature of a semantic cause if tokens were scored; large if the meaning has it."""
    meaning = evidence.meaning
    assert meaning is not None and isinstance(meaning.figures, ScoredFigures)
    names = semantic_names(meaning, meaning.figures)
    because = conclusion_of(meaning).because
    if name in names.by_tokens:
        return _by_tokens(meaning.figures, because)
    return _by_report(meaning.figures, because, name in names.by_report, evidence.clusters)


def _by_report(figures: ScoredFigures, because: str, named: bool, clusters: int) -> Signature:
    fit = figures.report
    gain = fit.trainer_loss - fit.loss
    error = (fit.gain_high - fit.gain_low) / SPAN
    total = max(fit.trainer_loss, 1e-300)
    share, low, high = (nats / total for nats in (gain, fit.gain_low, fit.gain_high))
    return Signature(
        p_value=chance_above(standard_score(gain, error, clusters), clusters),
        effect=gain,
        low=fit.gain_low,
        high=fit.gain_high,
        effect_of="Huber loss saved, nats^2",
        large=named,
        because=because,
        share=share if named else 0.0,
        share_low=low if named else 0.0,
        share_high=high if named else 0.0,
    )


def _by_tokens(figures: ScoredFigures, because: str) -> Signature:
    strongest, sample = figures.strongest, figures.sample
    return Signature(
        p_value=strongest.p_value if strongest else min(1.0, math.exp(sample.ln_p)),
        effect=sample.gain,
        low=sample.gain_low,
        high=sample.gain_high,
        effect_of="log-likelihood of the tokens gained, nats per token",
        large=True,
        because=because,
    )


def logged_signature(estimate: Estimate, what: str, named: bool, because: str, leans: bool = False) -> Signature:
    """Return an estimate as a signature. Of k2 no share is stated: without scores it cannot be recomputed."""
    return Signature(estimate.p_value, estimate.value, estimate.low, estimate.high, what, named, because, leans=leans)


def temperature_signature(evidence: TokenEvidence, of_report: bool) -> Signature | None:
    """Return whether the temperatures of both sides differ, and by whose fault.

    None without top logprobs of both, and if a penalty or a bias that the trainer lacks moves them as well.
    of_report: whether to test for rollouts that report another temperature than they sample at, or for a trainer that
    recomputes at another one than rollouts report.
    """
    factor = temperature_ratio(evidence)
    if factor is None or _moved_by_others(evidence):
        return None
    reported, trainer = _temperatures(evidence, factor.value)
    fits_request = _alike(reported, evidence.sampling.temperature)
    is_one = _is_a_temperature(evidence, factor.value, reported, trainer)
    named = is_one and factor.shows(TEMPERATURE_EFFECT, null=1.0) and fits_request != of_report
    leans = is_one and factor.leans(TEMPERATURE_EFFECT, null=1.0)
    because = (
        f"top logprobs of both sides differ by the factor {factor.value:.3f} [{factor.low:.3f}, {factor.high:.3f}]: "
        f"the engine samples at T={evidence.sampling.temperature:g} and reports T={reported:.3g}, but the "
        f"trainer computes T={trainer:.3g}"
    )
    return logged_signature(factor, "T of the trainer / T reported", named, because, leans)


def _is_a_temperature(evidence: TokenEvidence, factor: float, reported: float, trainer: float) -> bool:
    """Return whether dividing by a factor takes the difference away, as it does if a temperature makes it.

    Beside something else it may do so of a typical pair only; then both sides have to be at 1 or at a T that was set.
    """
    removed = removed_by_temperature(evidence, factor)
    if removed.squares >= LEAST_REMOVED:
        return True
    known = (1.0, evidence.sampling.temperature, evidence.trainer.temperature)
    both_known = all(any(_alike(side, other) for other in known) for side in (reported, trainer))
    return both_known and removed.typical >= MOST_REMOVED


def _moved_by_others(evidence: TokenEvidence) -> bool:
    """Return whether a penalty or a bias lies between the two sides: one that was requested, or one that shows."""
    requested, trainer = evidence.sampling, evidence.trainer
    if any(getattr(requested, name) != getattr(trainer, name) for name in (*PENALTIES, "logit_bias")):
        return True
    seen = seen_shift(evidence)
    return seen is not None and seen.shift.shows(LEAST_SHIFT) and seen.shift.value > 0 and seen.share >= LEAST_SHARE


def _temperatures(evidence: TokenEvidence, factor: float) -> tuple[float, float]:
    """Return (reported, trainer): their quotient is `factor`, and one of them is what it was taken to be.

    A side that is off has most likely left the temperature out, which tells the two sides apart unless both fit. If
    neither does, the engine's first choices show whether its report fits its tokens.
    """
    sampled, assumed = evidence.sampling.temperature, evidence.trainer.temperature
    of_report, of_trainer = (assumed / max(factor, 1e-300), assumed), (sampled, sampled * factor)
    if _alike(of_report[0], sampled) or _alike(of_report[0], 1.0):
        return of_report
    if _alike(of_trainer[1], 1.0):
        return of_trainer
    first = first_choice_excess(evidence)
    sound = first is not None and not first.shows(GREEDY_EFFECT)
    return of_trainer if sound else of_report


def _alike(temperature: float, other: float) -> bool:
    return abs(temperature / other - 1) < TEMPERATURE_EFFECT
