"""Blind trials where ids and one logprob a token are all there is: what `compare` says of samples of one prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from compare_tokens import compare
from selftest.blind import CLEAN
from worlds.plant import Dose

from evidence.selftest import sibling_faults
from evidence.selftest.run import in_processes
from evidence.selftest.sibling_world import SiblingFault, SiblingWorld
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.discover import discover
from rlaudit.errors import UsageError
from rlaudit.layers import Verdict
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.meaning import Kind, LoggedFigures

# Meanings are told apart by no interval of a metric: few replicates do.
SETTINGS = CompareSettings(replicates=200)
NOTHING = SiblingFault(CLEAN, ("-", "-", "-"), lambda dose: SiblingWorld(), frozenset({Kind.AGREE}))


@dataclass(frozen=True)
class SiblingLabel:
    """What was planted, by name; nothing where it is CLEAN."""

    fault: str
    dose: Dose

    @property
    def planted(self) -> SiblingFault:
        """The fault."""
        return NOTHING if self.fault == CLEAN else all_sibling_faults()[self.fault]


@dataclass(frozen=True)
class SiblingTrial:
    """A label, and what was said."""

    label: SiblingLabel
    kind: Kind
    broken: tuple[Broken, ...]

    @property
    def recalled(self) -> bool:
        """Whether what was planted was said."""
        planted = self.label.planted
        return self.kind in planted.kinds and (not planted.broken or bool(planted.broken & set(self.broken)))

    @property
    def wrong(self) -> bool:
        """Whether something was surely said that is not so: a mismatch of another kind, or a match."""
        return self.kind.verdict in {Verdict.MATCH, Verdict.MISMATCH} and self.kind not in self.label.planted.kinds

    @property
    def said(self) -> str:
        """For people."""
        return "; ".join((self.kind.value, *(kind.value for kind in self.broken)))


def all_sibling_faults() -> dict[str, SiblingFault]:
    """Every fault that a file of `sibling_faults/` offers, by name."""
    return discover(sibling_faults, "FAULT", SiblingFault)


def sibling_labels(names: Sequence[str] = (), doses: Sequence[Dose] = tuple(Dose)) -> tuple[SiblingLabel, ...]:
    """The rows asked for, all of them by default. Raises UsageError for a fault that does not exist."""
    known = (*all_sibling_faults(), CLEAN)
    for name in names:
        if name not in known:
            raise UsageError(f"no fault {name!r} to plant", f"there are: {', '.join(known)}")
    wanted = [name for name in known if not names or name in names]
    faults = [SiblingLabel(name, dose) for name in wanted if name != CLEAN for dose in doses]
    return (*faults, *([SiblingLabel(CLEAN, Dose.LOW)] if CLEAN in wanted else []))


def sibling_trial(label: SiblingLabel, rng: np.random.Generator) -> SiblingTrial:
    """One world, judged by what a log would show of it; the label is read before and after, never between."""
    world = label.planted.plant(label.dose)
    found = compare([world.table(rng)], world.asked, world.told, SETTINGS).meaning
    assert isinstance(found.figures, LoggedFigures)
    siblings = found.figures.siblings
    return SiblingTrial(label, found.kind, () if siblings is None else siblings.broken)


def run_sibling_trials(
    labels: Sequence[SiblingLabel],
    trials: int,
    seed: int,
    jobs: int,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> list[SiblingTrial]:
    """`trials` worlds for each label; the same seed gives the same, whatever `jobs` is."""
    return in_processes(partial(_round, tuple(labels)), [(seed, number) for number in range(trials)], jobs, told)


def _round(labels: Sequence[SiblingLabel], seed: tuple[int, int]) -> list[SiblingTrial]:
    return [sibling_trial(label, np.random.default_rng((*seed, place))) for place, label in enumerate(labels)]
