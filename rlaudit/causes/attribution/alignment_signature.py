"""Signatures of causes that `alignment.py` finds: rollout and trainer rows that are not of the same tokens."""

import math

from scipy.special import betaincinv

from rlaudit.causes.attribution.cause import NotTested, Outcome, Signature
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.resample import LEVEL
from rlaudit.tokens.alignment import Misalignment

# A failure of fewer sequences than this, with certainty, matters to no figure: if it is one alone, nothing hangs on it.
MATTERS = 1e-3
# Chance of so many sequences, below which a failure that decides nothing is open.
LEANS = 0.05


def alignment_signature(evidence: TokenEvidence, kind: Misalignment) -> Outcome:
    """Return the share of sequences, of the whole log, that fail in this way.

    One alone may be its log's fault, and some are chance; nor do these rule it out unless they are too few to matter.
    """
    report = evidence.alignment
    if report is None:
        return NotTested("alignment was not checked")
    count, large = report.count_of(kind), report.more_than_chance(kind)
    low, high = proportion_interval(count, report.sequences)
    value = 100 * count / max(report.sequences, 1)
    share = f". That is {value:.1f} % [{100 * low:.1f} %, {100 * high:.1f} %] of all sequences"
    return Signature(
        p_value=max(report.chance_of(kind), math.ulp(0.0)),
        effect=count / max(report.sequences, 1),
        low=low,
        high=high,
        effect_of="share of sequences",
        large=large,
        because=f"{report.message_of(kind)}{share}" if count else "every sequence is aligned",
        leans=not large and report.chance_of(kind) < LEANS and high > MATTERS,
    )


def proportion_interval(events: int, trials: int) -> tuple[float, float]:
    """Return the ends of the interval: 0 below if there is no event, 1 above if there is nothing else (or no trial)."""
    tail, others = (1.0 - LEVEL) / 2.0, trials - events
    low = float(betaincinv(events, others + 1, tail)) if events else 0.0
    high = float(betaincinv(events + 1, others, 1.0 - tail)) if others else 1.0
    return low, high
