"""What training logs call their metrics, what each name means there, and what is usual: read from metric_names.yaml."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlaudit.curves.logged_metric import Clip, Group, LoggedMetric, Weights, Worse

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_QUANTITIES: Mapping[str, Any] = yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), _LOADER)


@dataclass(frozen=True)
class Band:
    """What is usual of a quantity."""

    # A range or a limit.
    values: str
    means: str
    source: str


def _names() -> Iterator[LoggedMetric]:
    for canonical, quantity in _QUANTITIES.items():
        for name in quantity["names"]:
            entry = {**quantity, **name}
            yield LoggedMetric(
                entry["key"],
                entry["in"],
                canonical,
                Group[entry["group"].upper()],
                entry["definition"],
                Clip[entry.get("clip", "none").upper()],
                Weights[entry.get("weights", "none").upper()],
                Worse(entry.get("worse", "either")),
            )


KNOWN = tuple(_names())
# What most names of a quantity mean.
DEFINITIONS: Mapping[str, str] = {
    name: quantity["definition"] for name, quantity in _QUANTITIES.items() if "definition" in quantity
}
BANDS: Mapping[str, tuple[Band, ...]] = {
    name: tuple(Band(**band) for band in quantity["bands"])
    for name, quantity in _QUANTITIES.items()
    if "bands" in quantity
}


@cache
def known_metric(key: str) -> LoggedMetric | None:
    """Return what a key of a log means, None if no known framework uses it. The first that fits counts."""
    return next((metric for metric in KNOWN if re.fullmatch(metric.pattern, key)), None)


def keys_named(name: str, keys: Iterable[str]) -> list[str]:
    """Return the keys of a log that a user's name is of: the key itself, rlaudit's name, else a part of the key.

    `gen_kl_error` is of `train/gen_kl_error`, and `mismatch_kl` of `mismatch_kl/mean`.
    """
    keys = list(keys)
    metrics = {key: known_metric(key) for key in keys}
    named = [key for key, metric in metrics.items() if name in (key, metric.canonical if metric else key)]
    return named or [key for key in keys if f"/{name}/" in f"/{key}/"]
