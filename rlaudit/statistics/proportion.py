"""How sure a share of independent trials is: the exact interval of Clopper & Pearson (1934).

Not covered: tokens, which are not independent (`interval.py`).
"""

from scipy.special import betaincinv

from rlaudit.statistics.resample import LEVEL


def proportion_interval(events: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Ends of the interval; 0 where nothing was seen and 1 where nothing else was, also of no trial at all."""
    tail, rest = (1.0 - level) / 2.0, trials - events
    low = float(betaincinv(events, rest + 1, tail)) if events else 0.0
    high = float(betaincinv(events + 1, rest, 1.0 - tail)) if rest else 1.0
    return low, high
