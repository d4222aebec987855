"""Are tokens as likely to be the engine's first choice as the engine itself reports? Read off the rollout side alone.

Covered: reported logprobs that leave processing out. Tokens sampled at T below 1, or through a filter, are the first
choice more often than raw logprobs say; no trainer is needed to see it.
Not covered: a report that is honest while the trainer recomputes another thing: the tokens then fit the report.
Source: the greedy-leak test of `honesty.py`, with the reported distribution in place of the trainer's.
"""

import numpy as np

from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.meaning.scored_tokens import FEWEST_PROMPTS
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.resample import cluster_sums


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
    # Under an honest report tokens are draws one by one: a first choice of mass m varies by m (1 - m), seen or not.
    mass_T = np.exp(logprobs_TK[rows, best_T])
    columns = (excess_T, np.ones(evidence.tokens), mass_T * (1.0 - mass_T))
    sums_PJ = cluster_sums(columns, evidence.cluster_T, evidence.clusters)
    return estimate_of(sums_PJ[:, :2], least_variance_P=sums_PJ[:, 2])
