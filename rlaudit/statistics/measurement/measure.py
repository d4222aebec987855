"""All metrics of one comparison, each with its interval, its sample size and the formula it was computed by.

`tally` reduces tokens to sums per prompt, `measure_tally` turns sums into measurements; between the two,
tallies of chunks of one file are added (`running_tally.py`; chunks end at sequence ends and share one numbering of
prompts), so 100 million tokens need no more memory than one chunk. `measure` does both. What cannot be
computed is None with a reason, never 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.discover import Offers, discover
from rlaudit.statistics import metrics as metrics_package
from rlaudit.statistics.interval import IntervalMethod, interval, studentising_products
from rlaudit.statistics.measurement.metric import Columns, Level, Metric, ObjectiveSettings
from rlaudit.statistics.measurement.quantiles import Quantile, replicate_counts
from rlaudit.statistics.resample import LEVEL, REPLICATES, Weights, cluster_weights, replicate_together
from rlaudit.tokens.integrity import integrity_fault
from rlaudit.tokens.pairs import LOG_RATIO_CAP, LogprobPairs


def all_metrics() -> Offers[Metric]:
    """Return every metric that a file of `rlaudit/statistics/metrics` offers, by name."""
    return discover(metrics_package, "METRIC", Metric)


@dataclass(frozen=True)
class Measurement:
    """One metric of one comparison.

    value, low, high are None if they are undefined, and `reason` says why. reliable judges the interval.
    """

    value: float | None
    low: float | None
    high: float | None
    tokens: int
    sequences: int
    clusters: int
    formula: str
    unit: str
    interval: str
    level: float
    reliable: bool
    reason: str | None
    notes: Sequence[str]


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums per prompt of the columns of several metrics, with sizes; `running_tally.py` adds those of chunks."""

    settings: ObjectiveSettings
    metrics: tuple[Metric, ...]
    sums: Mapping[Columns, Floats]
    unavailable: Mapping[str, str]
    tokens_P: Integers
    sequences_P: Integers
    capped_tokens: int
    capped_sequences: int


def tally(
    pairs: LogprobPairs,
    metrics: Iterable[Metric] | None = None,
    settings: ObjectiveSettings | None = None,
) -> Tally:
    """Reduce `pairs` to sums per prompt, for `metrics` (all of them by default).

    Raises ValueError if `integrity_fault` finds a reason not to: show that to the user instead of calling this.
    """
    fault = integrity_fault(pairs)
    if fault is not None:
        raise ValueError(f"not comparable: {fault}")
    settings = settings or ObjectiveSettings()
    chosen = tuple(all_metrics().values() if metrics is None else metrics)
    reasons = {metric.name: metric.unavailable(pairs) for metric in chosen}
    sums: dict[Columns, Floats] = {}
    for metric in chosen:
        # Metrics that share their columns (the quantiles) share the sums, and later the replicates.
        if reasons[metric.name] is None and metric.columns not in sums:
            sums[metric.columns] = metric.prompt_sums(pairs, settings)
    return Tally(
        settings=settings,
        metrics=chosen,
        sums=sums,
        unavailable={name: reason for name, reason in reasons.items() if reason is not None},
        tokens_P=pairs.tokens_P,
        sequences_P=pairs.sequences_P,
        capped_tokens=int((pairs.log_ratio_T > LOG_RATIO_CAP).sum()),
        capped_sequences=int((pairs.sequence_log_ratio_S > LOG_RATIO_CAP).sum()),
    )


def measure(
    pairs: LogprobPairs,
    settings: ObjectiveSettings | None = None,
    metrics: Iterable[Metric] | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = LEVEL,
) -> dict[str, Measurement]:
    """Return every metric of `pairs` by name, with intervals over prompts. Raises ValueError as `tally` does."""
    return measure_tally(tally(pairs, metrics, settings), replicates, seed, level)


def measure_tally(
    summed: Tally, replicates: int = REPLICATES, seed: int = 0, level: float = LEVEL
) -> dict[str, Measurement]:
    """Return every metric of a tally by name, with intervals over the prompts that have tokens."""
    occupied = summed.tokens_P > 0
    weights_BP = cluster_weights(int(occupied.sum()), replicates, seed)
    everywhere = bool(occupied.all())
    sums = {columns: sums_PJ if everywhere else sums_PJ[occupied] for columns, sums_PJ in summed.sums.items()}
    resampled = _resampled(summed, sums, weights_BP)
    measurements: dict[str, Measurement] = {}
    for metric in summed.metrics:
        missing = summed.unavailable.get(metric.name)
        if missing is None and metric.columns not in sums:
            missing = "there is no token"
        if missing is not None:
            measurements[metric.name] = _unmeasured(metric, summed, missing, level)
            continue
        sums_PJ = sums[metric.columns]
        value = float(metric.combine(sums_PJ.sum(axis=0)))
        if not np.isfinite(value):
            measurements[metric.name] = _unmeasured(metric, summed, "undefined for these tokens", level)
            continue
        ends = interval(
            sums_PJ,
            weights_BP,
            metric.combine,
            metric.interval,
            sequences=int(summed.sequences_P.sum()),
            level=level,
            is_share=metric.is_share,
            replicates_BJ=resampled[metric.columns][0],
            products_BK=resampled[metric.columns][1],
        )
        measurements[metric.name] = Measurement(
            value=value,
            low=_within(metric, None if ends.low is None else ends.low - metric.resolution),
            high=_within(metric, None if ends.high is None else ends.high + metric.resolution),
            **_sizes(metric, summed),
            interval=ends.method,
            level=level,
            reliable=ends.reliable,
            reason=ends.reason,
            notes=_notes(metric, summed),
        )
    return measurements


def _resampled(
    summed: Tally, sums: Mapping[Columns, Floats], weights_BP: Weights
) -> dict[Columns, tuple[Floats, Floats | None]]:
    """Return replicates of every metric's sums and of what studentising needs, in one pass over the weights."""
    metrics = [metric for metric in summed.metrics if metric.columns in sums]
    quantiles: dict[Columns, list[Quantile]] = {}
    for metric in metrics:
        if isinstance(metric.combine, Quantile):
            quantiles.setdefault(metric.columns, []).append(metric.combine)
    counts: dict[Columns, tuple[Floats, Floats | None]] = {
        columns: (replicate_counts(weights_BP, sums[columns], of_columns), None)
        for columns, of_columns in quantiles.items()
    }
    plain = [columns for columns in sums if columns not in quantiles]
    studentised = [
        metric.columns
        for metric in metrics
        if metric.interval is IntervalMethod.STUDENTISED and metric.columns not in quantiles
    ]
    together = [sums[columns] for columns in plain]
    together += [studentising_products(sums[columns]) for columns in studentised]
    replicated = replicate_together(weights_BP, together)
    products = dict(zip(studentised, replicated[len(plain) :], strict=True))
    return counts | {columns: (replicated[place], products.get(columns)) for place, columns in enumerate(plain)}


def _within(metric: Metric, end: float | None) -> float | None:
    lowest, highest = metric.bounds
    return None if end is None else min(max(end, lowest), highest)


def _sizes(metric: Metric, summed: Tally) -> dict[str, Any]:
    return {
        "tokens": int(summed.tokens_P.sum()),
        "sequences": int(summed.sequences_P.sum()),
        "clusters": int((summed.tokens_P > 0).sum()),
        "formula": metric.formula_at(summed.settings),
        "unit": metric.unit,
    }


def _unmeasured(metric: Metric, summed: Tally, reason: str, level: float) -> Measurement:
    return Measurement(
        value=None,
        low=None,
        high=None,
        **_sizes(metric, summed),
        interval="none",
        level=level,
        reliable=False,
        reason=reason,
        notes=(),
    )


def _notes(metric: Metric, summed: Tally) -> tuple[str, ...]:
    notes = []
    if metric.resolution:
        notes.append(f"interval widened by {metric.resolution:.1e}, what float32 logprobs resolve")
    capped = summed.capped_tokens if metric.level is Level.TOKEN else summed.capped_sequences
    if metric.exponentiates and capped:
        notes.append(f"log ratios capped at {LOG_RATIO_CAP:g} in {capped} {metric.level.value}s")
    return tuple(notes)
