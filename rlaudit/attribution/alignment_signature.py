"""Signatures of causes that `alignment.py` finds: rollout and trainer rows that are not of the same tokens."""

from scipy.special import betaincinv

from rlaudit.attribution.cause import NotTested, Outcome, Signature
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.resample import LEVEL
from rlaudit.tokens.alignment import Misalignment

# The price of a change of lag is five nats, and the lag taken has to save four more.
CERTAIN = 1e-4
# One alone may be its log's fault.
FEWEST_SEQUENCES = 2


def alignment_signature(evidence: TokenEvidence, kind: Misalignment) -> Outcome:
    """Return the share of sequences that fail in this way. One alone may be its log's fault; nor does it acquit."""
    report = evidence.alignment
    if report is None:
        return NotTested("alignment was not looked at")
    count = report.count_of(kind)
    low, high = proportion_interval(count, report.sequences)
    return Signature(
        p_value=CERTAIN**count,
        effect=count / max(report.sequences, 1),
        low=low,
        high=high,
        effect_of="share of sequences",
        large=count >= FEWEST_SEQUENCES,
        because=report.message_of(kind) or "every sequence is aligned",
        leans=0 < count < FEWEST_SEQUENCES,
    )


def proportion_interval(events: int, trials: int) -> tuple[float, float]:
    """Return the ends of the interval: 0 below if there is no event, 1 above if there is nothing else (or no trial)."""
    tail, others = (1.0 - LEVEL) / 2.0, trials - events
    low = float(betaincinv(events, others + 1, tail)) if events else 0.0
    high = float(betaincinv(events + 1, others, 1.0 - tail)) if others else 1.0
    return low, high
