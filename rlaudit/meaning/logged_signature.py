"""Signatures of semantic causes from logs alone (`logged_semantics.py`)."""

from rlaudit.attribution.cause import Signature
from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.meaning.honesty import GREEDY_EFFECT
from rlaudit.meaning.logged_semantics import TEMPERATURE_TOLERANCE, temperature_ratio
from rlaudit.meaning.reported_calibration import first_choice_excess
from rlaudit.statistics.estimate import Estimate


def logged_signature(found: Estimate, what: str, named: bool, because: str, leans: bool = False) -> Signature:
    """An estimate as a signature. Of k2 no share is stated: without scores it cannot be recomputed."""
    return Signature(found.p_value, found.value, found.low, found.high, what, named, because, leans=leans)


def temperature_signature(evidence: TokenEvidence, dishonest: bool) -> Signature | None:
    """Whether the temperatures of both sides differ, and by whose fault; None without top logprobs of both.

    dishonest: asked for rollouts that report another temperature than they sample at; otherwise for a trainer that
    recomputes at another one than rollouts report.
    """
    found = temperature_ratio(evidence)
    if found is None:
        return None
    reported, trainer = _temperatures(evidence, found.value)
    honest = _alike(reported, evidence.sampling.temperature)
    named = found.convicts(TEMPERATURE_TOLERANCE, null=1.0) and honest != dishonest
    leans = found.leans(TEMPERATURE_TOLERANCE, null=1.0)
    because = (
        f"top logprobs of both sides differ by the factor {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]: "
        f"reported at T={reported:.3g}, sampled at T={evidence.sampling.temperature:g}, trainer at T={trainer:.3g}"
    )
    return logged_signature(found, "T of the trainer / T reported", named, because, leans)


def _temperatures(evidence: TokenEvidence, factor: float) -> tuple[float, float]:
    """(reported, trainer): their quotient is `factor`, and one of them is what it was taken to be.

    A side that is off has most likely left the temperature out, which tells the two sides apart unless both fit; where
    neither does, the engine's own first choices say whether its report is honest.
    """
    sampled, assumed = evidence.sampling.temperature, evidence.trainer.temperature
    of_report, of_trainer = (assumed / max(factor, 1e-300), assumed), (sampled, sampled * factor)
    if _alike(of_report[0], sampled) or _alike(of_report[0], 1.0):
        return of_report
    if _alike(of_trainer[1], 1.0):
        return of_trainer
    first = first_choice_excess(evidence)
    honest = first is not None and not first.convicts(GREEDY_EFFECT)
    return of_trainer if honest else of_report


def _alike(temperature: float, other: float) -> bool:
    return abs(temperature / other - 1) < TEMPERATURE_TOLERANCE
