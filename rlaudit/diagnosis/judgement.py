"""What is said of one layer: a verdict, the reason, the evidence, what would refute it, and the one next experiment."""

from dataclasses import dataclass

from rlaudit.layers import Layer, Verdict


@dataclass(frozen=True)
class Judgement:
    """One layer, judged. `cause` is named only by an intervention that removes it or a signature that identifies it."""

    layer: Layer
    verdict: Verdict
    cause: str | None
    because: str
    evidence: tuple[str, ...] = ()
    falsifier: str = ""
    next: str = ""


def figure(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, at the precision people compare."""
    if value is None:
        return "undefined"
    if low is None or high is None:
        return f"{value:.3g} (no interval)"
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"
