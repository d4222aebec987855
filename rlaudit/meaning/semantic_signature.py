"""Which causes the semantic verdict (`semantics.py`) names, as signatures with sizes.

A verdict may name several: a trainer that forgot temperature and filters has forgotten both.
"""

from dataclasses import dataclass

from rlaudit.attribution.cause import Signature
from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.semantics import ON_TOKENS, SemanticEvidence
from rlaudit.statistics.resample import chance_above, standard_score

RAW_LOGPROBS = "raw-logprobs"
TRAINER_TEMPERATURE = "trainer-temperature"
FILTERS_NOT_REPLAYED = "filters-not-replayed"
HIDDEN_TRUNCATION = "hidden-truncation"
PENALTY = "penalty"
FILTERS = frozenset({"top_k", "top_p", "min_p"})
PENALTIES = frozenset({"repetition_penalty", "presence_penalty", "frequency_penalty"})
# A 99.9 % interval spans this many standard errors.
SPAN = 6.581


@dataclass(frozen=True)
class SemanticNames:
    """The causes that a verdict names: by what the numbers report, and by what the tokens follow."""

    by_report: frozenset[str]
    by_tokens: frozenset[str]


def semantic_names(semantics: SemanticEvidence, reported: Semantics, requested_temperature: float) -> SemanticNames:
    """The names in a verdict; none unless it is a mismatch. reported: see `reported_meaning.py`."""
    none: frozenset[str] = frozenset()
    if semantics.verdict is not Verdict.MISMATCH:
        return SemanticNames(none, none)
    train, report, sample = semantics.theta_train, reported, semantics.theta_sample
    confirmed = bool(report.differences(train, tolerance=0.0)) and not semantics.report.differs
    if confirmed or (semantics.cause or "").startswith("the trainer recomputes wrongly"):
        return SemanticNames(_of_parameters(report.differences(train, tolerance=0.0), FILTERS_NOT_REPLAYED), none)
    if semantics.report.differs:
        beyond = sample.filtered and not train.filtered and not report.filtered
        hidden = beyond and semantics.sample.differs and _cut(semantics)
        return SemanticNames(frozenset({RAW_LOGPROBS}), frozenset({HIDDEN_TRUNCATION}) if hidden else none)
    apart = sample.differences(train)
    if semantics.sample.differs and "temperature" in apart and not sample.filtered:
        # Reported and recomputed at one temperature, sampled at another that was asked for: both sides left it out.
        both = abs(sample.temperature / requested_temperature - 1) < 0.03 and requested_temperature != train.temperature
        return SemanticNames(none, frozenset({RAW_LOGPROBS, TRAINER_TEMPERATURE}) if both else none)
    if semantics.sample.differs and sample.penalised:
        return SemanticNames(none, frozenset({PENALTY}))
    return SemanticNames(none, frozenset({HIDDEN_TRUNCATION}) if _cut(semantics) else none)


def _cut(semantics: SemanticEvidence) -> bool:
    """Whether a test that sees only tokens says that a filter cut the support."""
    return any(test.convicts and test.name.startswith("support") for test in semantics.tests)


def _of_parameters(apart: tuple[str, ...], filters: str) -> frozenset[str]:
    names = set()
    for parameter in apart:
        if parameter in FILTERS:
            names.add(filters)
        elif parameter in PENALTIES:
            names.add(PENALTY)
        else:
            names.add(TRAINER_TEMPERATURE)
    return frozenset(names)


def semantic_signature(evidence: TokenEvidence, name: str) -> Signature:
    """The signature of one semantic cause; large when the verdict names it."""
    semantics = evidence.semantics
    assert semantics is not None
    reported = evidence.reported or semantics.theta_report
    names = semantic_names(semantics, reported, evidence.sampling.temperature)
    if name in names.by_tokens:
        return _by_tokens(semantics)
    return _by_report(semantics, name in names.by_report, evidence.clusters)


def _by_report(semantics: SemanticEvidence, named: bool, clusters: int) -> Signature:
    fit = semantics.report
    gain = fit.trainer_loss - fit.loss
    error = (fit.gain_high - fit.gain_low) / SPAN
    total = max(fit.trainer_loss, 1e-300)
    share, low, high = (one / total for one in (gain, fit.gain_low, fit.gain_high))
    return Signature(
        p_value=chance_above(standard_score(gain, error, clusters), clusters),
        effect=gain,
        low=fit.gain_low,
        high=fit.gain_high,
        effect_of="Huber loss saved, nats^2",
        large=named,
        because=semantics.because,
        share=share if named else 0.0,
        share_low=low if named else 0.0,
        share_high=high if named else 0.0,
    )


def _by_tokens(semantics: SemanticEvidence) -> Signature:
    convicting = [test for test in semantics.tests if test.name in ON_TOKENS and test.convicts]
    strongest = min(convicting, key=lambda test: test.ln_p, default=None)
    sample = semantics.sample
    return Signature(
        p_value=strongest.p_value if strongest else float(min(1.0, 2.718281828**sample.ln_p)),
        effect=sample.gain,
        low=sample.gain_low,
        high=sample.gain_high,
        effect_of="log-likelihood of the tokens gained, nats per token",
        large=True,
        because=semantics.because,
    )
