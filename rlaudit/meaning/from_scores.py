"""The meaning of one set of tokens that the trainer scored under other meanings.

theta_report is a regression (`report_fit.py`), theta_sample a likelihood and tests that need no reported number
(`sample_fit.py`, `honesty.py`). The mean ratio convicts (honest logprobs over the same support give 1 exactly) and
never acquits.
"""

from dataclasses import replace

import numpy as np

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.honesty import token_tests
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, Meaning, ScoredFigures
from rlaudit.meaning.report_fit import ReportFit, fit_report, huber_losses, paired_interval
from rlaudit.meaning.sample_fit import SampleFit, fit_sample, prefers
from rlaudit.meaning.scored_tokens import ScoredTokens, edge_share
from rlaudit.statistics.resample import FEWEST_SEQUENCES

# Of the trainer's loss that a meaning has to save at least to be what the report follows although it does not halve it.
# The trade: half of what the least share of a cause worth naming is (`cause.py`).
LEAST_SAVED = 0.05


def identify(
    scored: ScoredTokens,
    theta_sample: Semantics,
    theta_train: Semantics,
    floor_k2: float | None = None,
    seed: int = 0,
) -> Meaning:
    """Find what these tokens mean.

    theta_sample: what the engine was asked to sample from; the tokens are tested, it is not taken on trust.
    theta_train: what the trainer computes. floor_k2: k2 (or k3) of the noise floor, nats^2; None if not measured.
    """
    if not scored.tokens:
        nan = float("nan")
        report = ReportFit(theta_train, theta_train, False, nan, nan, nan, nan, nan)
        sample = SampleFit(theta_train, theta_train, False, nan, nan, nan, 0.0)
        figures = ScoredFigures(report, sample, (), 0, scored.sequences, len(scored.candidates))
        return Meaning(Kind.NO_TOKENS, theta_train, theta_train, theta_sample, theta_sample, theta_train, figures)
    tests = token_tests(scored, theta_train)
    convicted = any(test.on_tokens and test.convicts for test in tests)
    report = fit_report(scored, theta_train, floor_k2, seed)
    sample = fit_sample(scored, theta_train, (theta_sample, report.theta), convicted, floor_k2, seed)
    figures = ScoredFigures(report, sample, tests, scored.tokens, scored.sequences, len(scored.candidates))
    kind = _convicted(figures, scored, theta_train, seed) or _open(figures, theta_sample, theta_train)
    return Meaning(
        kind=kind,
        theta_train=theta_train,
        theta_report=report.theta,
        theta_sample=sample.theta,
        requested=theta_sample,
        reported=_reported(figures, kind, scored, theta_train),
        figures=figures,
    )


def _convicted(figures: ScoredFigures, scored: ScoredTokens, train: Semantics, seed: int) -> Kind | None:
    """Return what convicts first: a report that the tokens refute, a trainer that recomputes something else, tokens
    that were not requested, a mean ratio that nothing explains. None if nothing convicts."""
    report, sample = figures.report, figures.sample
    if report.differs and _refuted(figures, scored, train, seed):
        return Kind.OTHER_REPORT if report.theta.differences(RAW) else Kind.RAW_REPORT
    if report.differs:
        return Kind.TRAINER
    if figures.sample_differs:
        strongest = figures.strongest
        cut = sample.theta.filtered if sample.differs else strongest is not None and strongest.filter is not None
        return Kind.HIDDEN_FILTER if cut else Kind.HIDDEN_SAMPLING
    return Kind.UNEXPLAINED_BIAS if figures.tests[0].convicts else None


def _open(figures: ScoredFigures, requested: Semantics, train: Semantics) -> Kind:
    """Return why there is no acquittal although nothing convicts; or that all three agree."""
    report, sample = figures.report, figures.sample
    if report.suspicious:
        return Kind.BETTER_FIT
    if sample.gains_some or any(test.leans for test in figures.tests):
        return Kind.HANGING
    if requested.differences(train):
        return Kind.UNTOLD
    few = figures.sequences < FEWEST_SEQUENCES or figures.tokens < FEWEST_TOKENS
    return Kind.FEW if few else Kind.AGREE


def _refuted(figures: ScoredFigures, scored: ScoredTokens, train: Semantics, seed: int) -> bool:
    """Return whether the tokens refute the meaning that the report follows, in favour of the trainer's.

    If they do not tell, only a report that leaves processing out can be dishonest: a sampler reports no filter, penalty
    or temperature that it does not apply.
    """
    theta = figures.report.theta
    if figures.sample.differs and not theta.differences(figures.sample.theta):
        return False
    in_favour = prefers(scored, theta, train, train, seed)
    return in_favour < 0 or (in_favour == 0 and not theta.differences(RAW))


def _reported(figures: ScoredFigures, kind: Kind, scored: ScoredTokens, train: Semantics) -> Semantics:
    """Return the meaning that reported logprobs follow, even if its fit alone did not show it.

    `report_fit.py` accepts a meaning that halves the loss. Two things can keep the right one from doing so: a large
    mismatch of another kind (stale weights, a stale cache), and a few tokens beyond the edge of a filter, which cost
    more than everything else between engines that agree closely. So if the tokens follow a meaning, the reported
    numbers are tested against that one again: on the tokens that it calls possible, by the sign of the gain.
    """
    fit, sample = figures.report, figures.sample
    if fit.differs or kind.verdict is not Verdict.MISMATCH or not sample.differs:
        return fit.theta
    drawn_from = [sample.theta]
    if not fit.best.differences(sample.theta):
        drawn_from.insert(0, fit.best)  # the temperature that fits the report is the finer estimate
    if sample.theta.filtered:
        drawn_from.append(replace(sample.theta, temperature=train.temperature))
    for meaning in drawn_from:
        if meaning.differences(train, tolerance=0.0) and _follows(fit, scored, meaning):
            return meaning
    return fit.theta


def _follows(fit: ReportFit, scored: ScoredTokens, meaning: Semantics) -> bool:
    explained_T = scored.logprobs_under(meaning)
    if explained_T is None:
        return False
    possible_T = np.isfinite(explained_T)
    if 1.0 - possible_T.mean() > edge_share(scored):
        return False
    finite_T = np.where(possible_T, explained_T, scored.rollout_logprobs_T)
    saved_T = huber_losses(scored.rollout_logprobs_T, scored.trainer_logprobs_T, 1.0)
    saved_T = np.where(possible_T, saved_T - huber_losses(scored.rollout_logprobs_T, finite_T, 1.0), 0.0)
    low, _ = paired_interval(scored, saved_T)
    return low > 0 and float(saved_T.mean()) > LEAST_SAVED * fit.trainer_loss
