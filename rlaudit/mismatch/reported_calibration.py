"""Are tokens as likely to be the engine's first choice as the engine itself reports? Read off the rollout side alone.

Covered: reported logprobs that leave processing out. Tokens sampled at T below 1, or through a filter, are the first
choice more often than raw logprobs say; no trainer is needed to see it.
Not covered: a report that is honest while the trainer recomputes another thing: the tokens then fit the report.
Source: the greedy-leak test of `honesty.py`, with the reported distribution in place of the trainer's.
"""

import numpy as np
from scipy.special import ndtr

from rlaudit.mismatch.logged_semantics import Estimate
from rlaudit.mismatch.scored_tokens import FEWEST_PROMPTS
from rlaudit.mismatch.standard_score import standard_score
from rlaudit.mismatch.token_evidence import TokenEvidence


def first_choice_excess(evidence: TokenEvidence) -> Estimate | None:
    """Share of tokens that are the reported first choice, less the mass reported for it; None without top logprobs."""
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs", "token_id")) or evidence.clusters < FEWEST_PROMPTS:
        return None
    ids_TK, logprobs_TK = evidence.tops["rollout_top_ids"], evidence.tops["rollout_top_logprobs"]
    if not logprobs_TK.shape[1]:
        return None
    best_T = np.argmax(logprobs_TK, axis=1)
    rows = np.arange(evidence.tokens)
    excess_T = (ids_TK[rows, best_T] == evidence.token_id_T) - np.exp(logprobs_TK[rows, best_T])
    if not np.isfinite(excess_T).all():
        return None
    value = float(excess_T.mean())
    tokens_P = np.bincount(evidence.cluster_T, minlength=evidence.clusters)
    apart_P = np.bincount(evidence.cluster_T, excess_T, minlength=evidence.clusters) - value * tokens_P
    few = evidence.clusters / (evidence.clusters - 1)
    error = float(np.sqrt(few * np.square(apart_P).sum())) / evidence.tokens
    # Under an honest report tokens are Bernoulli draws one by one: the larger of both standard errors.
    error = max(error, float(excess_T.std(ddof=1)) / float(np.sqrt(evidence.tokens)))
    p_value = float(2.0 * ndtr(-abs(standard_score(value, error, evidence.clusters))))
    return Estimate(value, value - 1.96 * error, value + 1.96 * error, p_value)
