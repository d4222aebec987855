"""What the trials of a self-test amount to: recall per cell, wrong names, and whether the targets are met."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from selftest.blind import CLEAN, Label
from worlds.plant import Dose

from evidence.selftest.trial import Trial
from rlaudit.causes.attribution.alignment_signature import proportion_interval

# What a self-test has to reach: a cause is missed, or a clean world called otherwise, once in twenty at the most; near
# the limit of detection and with two causes at a time more may be missed, but no more wrong names be given.
TOP_RECALL = 0.95
MIDDLE_RECALL = 0.85
CLEAN_RECALL = 0.95
PAIR_RECALL = 0.80
MOST_WRONG = 0.05
NOTHING = "nothing named"


@dataclass(frozen=True)
class Cell:
    """All trials of one label."""

    label: Label
    trials: tuple[Trial, ...]

    @property
    def recall(self) -> float:
        """Share in which all that was planted was named; for a clean world, in which it was called clean."""
        return sum(trial.recalled for trial in self.trials) / len(self.trials)

    @property
    def wrong(self) -> float:
        """Share in which a cause was named that was not planted."""
        return sum(bool(trial.wrong) for trial in self.trials) / len(self.trials)

    @cached_property
    def named(self) -> Counter[str]:
        """How often each set of causes was named."""
        return Counter(_set_name(trial) for trial in self.trials)


@dataclass(frozen=True)
class Target:
    """A figure that has to be reached."""

    title: str
    value: float
    bound: float
    at_most: bool
    events: int
    trials: int

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share (Clopper-Pearson), trials counted as independent."""
        return proportion_interval(self.events, self.trials)


@dataclass(frozen=True)
class Confusion:
    """All cells of one self-test."""

    generator: str
    cells: tuple[Cell, ...]

    @property
    def targets(self) -> tuple[Target, ...]:
        """Those that the cells at hand say something about."""
        groups = (
            ("recall at the top dose", [c for c in self._single if c.label.doses == (Dose.TOP,)], TOP_RECALL),
            ("recall at the middle dose", [c for c in self._single if c.label.doses == (Dose.MIDDLE,)], MIDDLE_RECALL),
            ("clean called clean", [c for c in self.cells if not c.label.causes], CLEAN_RECALL),
            ("two faults: both named", [c for c in self.cells if len(c.label.causes) > 1], PAIR_RECALL),
        )
        found = [_recall(title, group, bound) for title, group, bound in groups if group]
        every = [trial for cell in self.cells for trial in cell.trials]
        wrong = sum(bool(trial.wrong) for trial in every)
        return (*found, Target("a wrong cause named", wrong / len(every), MOST_WRONG, True, wrong, len(every)))

    @property
    def _single(self) -> list[Cell]:
        return [cell for cell in self.cells if len(cell.label.causes) == 1]

    @property
    def short_cells(self) -> tuple[tuple[Cell, float], ...]:
        """Cells below the target of their group, with that target; the groups are judged as a whole."""
        bounds = {(Dose.TOP,): TOP_RECALL, (Dose.MIDDLE,): MIDDLE_RECALL}
        single = [(cell, bounds[cell.label.doses]) for cell in self._single if cell.label.doses in bounds]
        pairs = [(cell, PAIR_RECALL) for cell in self.cells if len(cell.label.causes) > 1]
        return tuple((cell, bound) for cell, bound in (*single, *pairs) if cell.recall < bound)

    @property
    def met(self) -> bool:
        """Whether every target is."""
        return all(target.met for target in self.targets)


def confusion_of(generator: str, labels: Sequence[Label], trials: Iterable[Trial]) -> Confusion:
    """Sort trials into cells, in the order of the labels."""
    by_label: dict[Label, list[Trial]] = {label: [] for label in labels}
    for trial in trials:
        by_label[trial.label].append(trial)
    return Confusion(generator, tuple(Cell(label, tuple(found)) for label, found in by_label.items() if found))


def _recall(title: str, cells: Sequence[Cell], bound: float) -> Target:
    trials = [trial for cell in cells for trial in cell.trials]
    recalled = sum(trial.recalled for trial in trials)
    return Target(title, recalled / len(trials), bound, False, recalled, len(trials))


def _set_name(trial: Trial) -> str:
    if trial.named:
        return " + ".join(sorted(trial.named))
    return CLEAN if trial.clean else NOTHING
