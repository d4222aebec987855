"""Which curve of the candidate is compared with which curve of the reference, and which cannot be and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.curves.curve import BOOKKEEPING, Run
from rlaudit.curves.logged_metric import LoggedMetric
from rlaudit.curves.metric_names import keys_named, known_metric


@dataclass(frozen=True)
class Pair:
    """Two keys that mean one thing."""

    reference_key: str
    candidate_key: str
    # What both mean; None for a name of no known framework.
    metric: LoggedMetric | None


@dataclass(frozen=True)
class Pairing:
    """What is compared, and what is not."""

    pairs: tuple[Pair, ...]
    # What should be compared and cannot be, with the reason.
    unknown: tuple[tuple[str, str], ...]
    # Other common keys.
    left: tuple[str, ...]


def pair_up(references: Sequence[Run], candidate: Run, wanted: Sequence[str]) -> Pairing:
    """Return pairs for the requested metrics, by key or by canonical name.

    Without a request these are all known metrics; if no common key is known, all common keys that are no bookkeeping.
    """
    shared = set.intersection(*(set(run.curves) for run in references))
    common = sorted(shared & set(candidate.curves))
    if wanted:
        chosen = [_requested(name, common, references, candidate) for name in wanted]
        pairs = tuple(dict.fromkeys(pair for matches, _ in chosen for pair in matches))
        return Pairing(pairs, tuple(unknown for _, unknown in chosen if unknown), ())
    compared = [key for key in common if known_metric(key)]
    renamed, unknown = _across_names(sorted(shared - set(common)), candidate, set(common))
    if not compared and not renamed:
        compared = [key for key in common if not BOOKKEEPING.search(key)]
    pairs = (*(Pair(key, key, known_metric(key)) for key in compared), *renamed)
    taken = {pair.reference_key for pair in pairs}
    return Pairing(pairs, unknown, tuple(key for key in common if key not in taken and not BOOKKEEPING.search(key)))


def _requested(
    name: str, common: Sequence[str], references: Sequence[Run], candidate: Run
) -> tuple[list[Pair], tuple[str, str] | None]:
    keys = keys_named(name, common)
    if keys:
        return [Pair(key, key, known_metric(key)) for key in keys], None
    runs = (*references, candidate)
    without = [run.name for run in runs if not keys_named(name, run.curves)]
    why = f"not in {', '.join(without)}" if without else "logged under names whose definitions differ"
    return [], (name, why)


def _across_names(
    reference_keys: Sequence[str], candidate: Run, common: set[str]
) -> tuple[tuple[Pair, ...], tuple[tuple[str, str], ...]]:
    """Find known keys of the reference that the candidate logs under another name, or not at all."""
    pairs, unknown = [], []
    others = {key: known_metric(key) for key in candidate.curves if key not in common}
    for key in reference_keys:
        metric = known_metric(key)
        if metric is None:
            continue
        same = [other for other, theirs in others.items() if theirs and theirs.meaning == metric.meaning]
        like = [(other, theirs) for other, theirs in others.items() if theirs and theirs.canonical == metric.canonical]
        if len(same) == 1:
            pairs.append(Pair(key, same[0], metric))
        elif like:
            other, meant = like[0]
            unknown.append((key, f"the candidate's {other} is another quantity: {difference(metric, meant)}"))
        else:
            unknown.append((key, "not in the candidate"))
    renamed = {pair.candidate_key for pair in pairs}
    canonical = {metric.canonical for key in reference_keys if (metric := known_metric(key))}
    for other, theirs in others.items():
        if theirs and other not in renamed and theirs.canonical not in canonical:
            unknown.append((other, "only in the candidate"))
    return tuple(pairs), tuple(unknown)


def difference(first: LoggedMetric, second: LoggedMetric) -> str:
    """Return how two metrics of one canonical name differ."""
    parts = [
        f"{ours} in the reference, {theirs} in the candidate"
        for ours, theirs in (
            (first.definition, second.definition),
            (first.clip.value, second.clip.value),
            (first.weights.value, second.weights.value),
        )
        if ours != theirs and ours and theirs
    ]
    return "; ".join(parts) or "defined differently"
