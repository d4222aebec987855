"""Are tokens drawn from the distribution that is reported, if every parameter is neutral?

Counts of the listed tokens, and of all others together, are held against the reported probabilities: G = 2 sum n ln(n /
expected) of all prompts, and its distribution from multinomial draws, which is exact for small counts.
"""

from collections import Counter

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.checked import Check, Checked, unanswered
from rlaudit.probe.observed import Observations, Observed
from rlaudit.probe.server import Server

SIMULATIONS = 4000
SURE = 1e-3
FEWEST = 100


def ask(server: Server, seen: Observations) -> Checked:
    """Judge the draws that were made for the prompts with an open next token."""
    del server
    draws = sum(len(observed.drawn) for observed in seen.open)
    if draws < FEWEST:
        return unanswered(f"{draws} draws are too few")
    p = p_value(seen)
    figures = {"draws": float(draws), "p": p}
    verdict = (
        "do not have the frequencies of the reported distribution, although every parameter is neutral"
        if p < SURE
        else "have the frequencies of the reported distribution"
    )
    return Checked(found=p < SURE, answer=f"{draws} tokens {verdict} (p {p:.2g})", figures=figures)


def p_value(seen: Observations, seed: int = 0) -> float:
    """Return the probability of draws at least as far from the reported distribution."""
    rng = np.random.default_rng(seed)
    distance, simulated = 0.0, np.zeros(SIMULATIONS)
    for observed in seen.open:
        probabilities = _probabilities(observed)
        counts = _counts(observed)
        distance += float(_distance(counts[None], probabilities)[0])
        drawn = rng.multinomial(int(counts.sum()), probabilities, SIMULATIONS)
        simulated += _distance(drawn.astype(np.float64), probabilities)
    return float((1 + np.sum(simulated >= distance)) / (1 + SIMULATIONS))


def _probabilities(observed: Observed) -> Floats:
    """Return the probabilities of the listed tokens and of all others."""
    listed = np.exp(observed.context.logprobs_K)
    whole = np.append(listed, max(1.0 - listed.sum(), 1e-9))
    probabilities: Floats = whole / whole.sum()
    return probabilities


def _counts(observed: Observed) -> Floats:
    times = Counter(observed.drawn)
    listed = [times[token] for token in observed.context.tokens]
    return np.array([*listed, len(observed.drawn) - sum(listed)], dtype=np.float64)


def _distance(counts_NK: Floats, probabilities_K: Floats) -> Floats:
    expected_NK = counts_NK.sum(axis=1, keepdims=True) * probabilities_K
    ratio_NK = np.where(counts_NK > 0, counts_NK / expected_NK, 1.0)
    distance_N: Floats = 2.0 * np.sum(counts_NK * np.log(ratio_NK), axis=1)
    return distance_N


CHECK = Check("draws", "Are tokens drawn from the distribution that is reported?", ask)
