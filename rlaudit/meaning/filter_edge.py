"""How many tokens engine noise may carry across the edge of a filter that the trainer replays.

Two engines whose logits differ by rounding cut the same nucleus at slightly different places. A few sampled tokens then
lie outside the trainer's support, as much of the trainer's mass lies outside the engine's, and neither means that
somebody used another filter. The share grows with the noise.
"""

import numpy as np

from rlaudit.meaning.scored_tokens import ScoredTokens

LEAST_SHARE = 0.005
# Per nat of mean |d|: 0.05 to 0.25 where top-k, top-p or min-p cut the tail of a simulated model, 0.6 where top_k=5
# cuts its bulk (tests/meaning/simulated_tokens.py).
SHARE_PER_NAT = 0.6
MOST_TOKENS = 0.5
CAP_NATS = 1.0


def engine_noise(scored: ScoredTokens) -> float:
    """Mean |d| that the best meaning leaves on the tokens it calls possible, nats: what no meaning explains."""
    left = []
    for explained_T in (scored.trainer_logprobs_T, *scored.candidate_logprobs_TC.T):
        possible_T = np.isfinite(explained_T) & np.isfinite(scored.rollout_logprobs_T)
        if possible_T.size and possible_T.mean() > MOST_TOKENS:
            apart_T = np.abs(scored.rollout_logprobs_T[possible_T] - explained_T[possible_T])
            left.append(float(np.minimum(apart_T, CAP_NATS).mean()))
    return min(left, default=0.0)


def edge_share(scored: ScoredTokens) -> float:
    """Largest share of impossible tokens that engine noise explains."""
    return LEAST_SHARE + SHARE_PER_NAT * engine_noise(scored)
