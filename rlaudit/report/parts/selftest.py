"""What a self-test reports: the confusion matrix and its targets."""

from collections.abc import Sequence

from typing_extensions import TypedDict


class Named(TypedDict):
    """Causes that were named together, and how often."""

    causes: str
    trials: int


class Cell(TypedDict):
    """One fault at one dose."""

    planted: str
    dose: str
    trials: int
    recall: float
    wrong: float
    named: Sequence[Named]


class Target(TypedDict):
    """A figure that has to be reached."""

    title: str
    value: float
    low: float
    high: float
    bound: float
    at_most: bool
    met: bool
    events: int
    trials: int


class SelfTest(TypedDict):
    """The confusion matrix."""

    cells: Sequence[Cell]
    targets: Sequence[Target]
    missed: Sequence[str]
