"""The meaning of one set of tokens that the trainer scored under other meanings.

theta_report is a regression (`report_fit.py`), theta_sample a likelihood and tests that need no reported number
(`sample_fit.py`, `token_tests.py`). The mean ratio can show a mismatch (the sampler's logprobs over the
same support give 1 exactly) and never a match.
"""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.meaning import FEWEST_TOKENS, Kind, Meaning, ScoredFigures, as_setting
from rlaudit.meaning.report_fit import ReportFit, fit_report, huber_losses, paired_interval, rooms
from rlaudit.meaning.sample_fit import SampleFit, fit_sample, prefers
from rlaudit.meaning.scored_tokens import ScoredTokens, edge_share
from rlaudit.meaning.token_tests import token_tests
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
    theta_train: what the trainer computes. floor_k2: k2 (or k3) of noise, nats^2; None if not measured.
    """
    if not scored.tokens:
        nan = float("nan")
        report = ReportFit(theta_train, theta_train, False, nan, nan, nan, nan, nan)
        sample = SampleFit(theta_train, theta_train, False, nan, nan, nan, 0.0)
        figures = ScoredFigures(report, sample, (), 0, scored.sequences, len(scored.candidates))
        return Meaning(Kind.NO_TOKENS, theta_train, theta_train, theta_sample, theta_sample, figures)
    tests = token_tests(scored, theta_train)
    seen_in_tokens = any(test.on_tokens and test.shows for test in tests)
    report = fit_report(scored, theta_train, floor_k2, seed)
    sample = fit_sample(scored, theta_train, (theta_sample, report.theta), seen_in_tokens, floor_k2, seed)
    figures = ScoredFigures(report, sample, tests, scored.tokens, scored.sequences, len(scored.candidates))
    kind, reported = _mismatch(figures, scored, theta_sample, theta_train, seed)
    return Meaning(
        kind=kind or _open(figures, theta_sample, theta_train),
        theta_train=theta_train,
        theta_report=reported,
        theta_sample=sample.theta,
        requested=theta_sample,
        figures=figures,
    )


def _mismatch(
    figures: ScoredFigures, scored: ScoredTokens, requested: Semantics, train: Semantics, seed: int
) -> tuple[Kind | None, Semantics]:
    """Return what shows first, and what the report follows: a report that the tokens rule out, a trainer that
    recomputes something else, tokens that were not requested, a mean ratio that nothing explains. None if nothing does.
    """
    report = figures.report
    if report.differs and _tokens_follow_trainer(figures, scored, train, seed):
        return (Kind.OTHER_REPORT if report.theta.differences(RAW) else Kind.RAW_REPORT), report.theta
    if report.differs:
        return Kind.TRAINER, report.theta
    biased = figures.tests[0].shows
    if figures.sample_differs:
        followed = _followed(figures, scored, requested, train)
        if followed is not None:
            return Kind.TRAINER, followed
        filters = _filters(figures, train)
        below = biased and (figures.tests[0].estimate or 0.0) < 0.0
        if filters is not None and (below or scored.report_is_cut):
            # What is cut off has no probability in the report either: the filter is one that no candidate is near.
            return Kind.TRAINER, filters
        if not biased:
            return Kind.HIDDEN_SAMPLING if filters is None else Kind.HIDDEN_FILTER, report.theta
    return Kind.UNEXPLAINED_BIAS if biased else None, report.theta


def _filters(figures: ScoredFigures, train: Semantics) -> Semantics | None:
    """Return the filtered meaning that the tokens show, its filter at the edge of their support; None for no filter."""
    sample, strongest = figures.sample, figures.strongest
    if sample.differs:
        return figures.at_the_edge(sample.theta) if sample.theta.filtered else None
    if strongest is None or strongest.filter is None or strongest.estimate is None:
        return None
    return replace(train, **{strongest.filter: as_setting(strongest.filter, strongest.estimate)})


def _open(figures: ScoredFigures, requested: Semantics, train: Semantics) -> Kind:
    """Return why there is no match although no mismatch shows; or that all three agree."""
    report, sample = figures.report, figures.sample
    if report.suspicious:
        return Kind.BETTER_FIT
    if sample.gains_some or any(test.leans for test in figures.tests):
        return Kind.HANGING
    if requested.differences(train):
        return Kind.UNTOLD
    few = figures.sequences < FEWEST_SEQUENCES or figures.tokens < FEWEST_TOKENS
    return Kind.FEW if few else Kind.AGREE


def _tokens_follow_trainer(figures: ScoredFigures, scored: ScoredTokens, train: Semantics, seed: int) -> bool:
    """Return whether the tokens rule out the meaning that the report follows, in favour of the trainer's.

    If they do not tell, only a report that leaves processing out can be wrong: a sampler reports no filter, penalty
    or temperature that it does not apply. Of a filter they may seem to tell, where its edge is between two that are
    tried.
    """
    theta = figures.report.theta
    if theta.filtered and theta.unfiltered == train.unfiltered:
        return False
    if figures.sample.differs and not theta.differences(figures.sample.theta):
        return False
    in_favour = prefers(scored, theta, train, train, seed)
    return in_favour < 0 or (in_favour == 0 and not theta.differences(RAW))


def _followed(figures: ScoredFigures, scored: ScoredTokens, requested: Semantics, train: Semantics) -> Semantics | None:
    """Return the meaning that reported logprobs share with the tokens, even if its fit alone did not show it.

    `report_fit.py` accepts a meaning that halves the loss. Two things can keep the right one from doing so: a large
    mismatch of another kind (stale weights, a stale cache), and a few tokens beyond the edge of a filter, which cost
    more than everything else between engines that agree closely. So if the tokens follow a meaning, the reported
    numbers are tested against that one again: on the tokens that it calls possible, by the sign of the gain.
    """
    fit, sample = figures.report, figures.sample
    drawn_from = []
    if sample.differs:
        drawn_from.append(sample.theta)
        if not fit.best.differences(sample.theta):
            drawn_from.insert(0, fit.best)  # the temperature that fits the report is the finer estimate
        if sample.theta.filtered:
            drawn_from.append(replace(sample.theta, temperature=train.temperature))
    if figures.cut:
        drawn_from += [meaning for meaning in (requested, fit.best, sample.best) if meaning.filtered]
    for meaning in dict.fromkeys(drawn_from):
        if meaning.differences(train, tolerance=0.0) and _follows(fit, scored, meaning, train):
            return meaning
    return None


def _follows(fit: ReportFit, scored: ScoredTokens, meaning: Semantics, train: Semantics) -> bool:
    explained_T = scored.logprobs_under(meaning)
    if explained_T is None:
        return False
    possible_T = np.isfinite(explained_T)
    if 1.0 - possible_T.mean() > edge_share(scored):
        return False
    finite_T = np.where(possible_T, explained_T, scored.rollout_logprobs_T)
    room_T = rooms(scored, train)
    saved_T = huber_losses(scored.rollout_logprobs_T, scored.trainer_logprobs_T, 1.0, room_T)
    saved_T = np.where(possible_T, saved_T - huber_losses(scored.rollout_logprobs_T, finite_T, 1.0, room_T), 0.0)
    low, _ = paired_interval(scored, saved_T)
    return low > 0 and float(saved_T.mean()) > LEAST_SAVED * fit.trainer_loss
