"""The meaning that reported logprobs follow, also where its fit alone did not show it.

`report_fit.py` accepts a meaning that halves the loss. Two things can keep the right one from doing so: a large
mismatch of another kind (stale weights, a stale cache), and a few tokens beyond the edge of a filter, which cost more
than everything else between engines that agree closely. So where the tokens follow a meaning, it is asked again whether
the reported numbers follow that one: on the tokens that it calls possible, and by the sign of the gain.
"""

from dataclasses import replace

import numpy as np

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.filter_edge import edge_share
from rlaudit.meaning.report_fit import huber_losses, paired_interval
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.semantics import SemanticEvidence

# Of the trainer's loss that a confirmed meaning has to save at least.
LEAST_SAVED = 0.05


def reported_meaning(semantics: SemanticEvidence, scored: ScoredTokens | None) -> Semantics:
    """theta_report, or the one that the tokens follow where the report does too."""
    fit, sample = semantics.report, semantics.sample
    if fit.differs or semantics.verdict is not Verdict.MISMATCH or not sample.differs or scored is None:
        return semantics.theta_report
    drawn_from = [sample.theta]
    if not fit.best.differences(sample.theta):
        drawn_from.insert(0, fit.best)  # the temperature that fits the report is the finer estimate
    if sample.theta.filtered:
        drawn_from.append(replace(sample.theta, temperature=semantics.theta_train.temperature))
    for meaning in drawn_from:
        if meaning.differences(semantics.theta_train, tolerance=0.0) and _follows(semantics, scored, meaning):
            return meaning
    return semantics.theta_report


def _follows(semantics: SemanticEvidence, scored: ScoredTokens, meaning: Semantics) -> bool:
    explained_T = scored.logprobs_under(meaning)
    if explained_T is None:
        return False
    possible_T = np.isfinite(explained_T)
    if 1.0 - possible_T.mean() > edge_share(scored):
        return False
    known_T = np.where(possible_T, explained_T, scored.rollout_logprobs_T)
    saved_T = huber_losses(scored.rollout_logprobs_T, scored.trainer_logprobs_T, 1.0)
    saved_T = np.where(possible_T, saved_T - huber_losses(scored.rollout_logprobs_T, known_T, 1.0), 0.0)
    low, _ = paired_interval(scored, saved_T)
    return low > 0 and float(saved_T.mean()) > LEAST_SAVED * semantics.report.trainer_loss
