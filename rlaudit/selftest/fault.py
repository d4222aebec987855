"""A fault that the self-test can plant: the cause it stands for, and how a dose of it changes a world."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant


@dataclass(frozen=True)
class Fault:
    """name: of the cause. doses: what low, middle and top mean, for people.

    plant(plant, ground, dose, rng): the world with the fault in it.
    """

    name: str
    doses: tuple[str, str, str]
    plant: Callable[[Plant, Ground, Dose, np.random.Generator], Plant]


def doses_in_floors(times: tuple[float, float, float], where: str = "") -> tuple[str, str, str]:
    """Doses that are multiples of the noise floor, in words."""
    low, middle, top = (f"{one:g} times the noise floor {where}".strip() for one in times)
    return low, middle, top
