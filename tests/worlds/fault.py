"""A fault that can be planted in a world: how a dose of it changes what is sampled, reported, scored or recorded."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from worlds.ground import Ground
from worlds.plant import Dose, Plant


@dataclass(frozen=True)
class Fault:
    """doses: what low, middle and top mean, for people.

    plant(plant, ground, dose, rng): the world with the fault in it.
    """

    doses: tuple[str, str, str]
    plant: Callable[[Plant, Ground, Dose, np.random.Generator], Plant]


def in_floors(times: tuple[float, float, float], where: str) -> tuple[str, str, str]:
    """Doses that are multiples of the noise, in words."""
    low, middle, top = (f"{one:g} times the noise {where}".strip() for one in times)
    return low, middle, top


def noise_fault(
    times: tuple[float, float, float], where: str, pattern: Callable[[Ground, np.random.Generator], Floats]
) -> Fault:
    """More noise on the engine's logits: `times` the floor's at each dose, where `pattern` (T,) is 1."""

    def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
        size = times[dose] * ground.generator.floor

        def scale(ground: Ground, rng: np.random.Generator) -> Floats:
            scale_T: Floats = size * pattern(ground, rng)
            return scale_T

        return plant.with_scale(scale)

    return Fault(in_floors(times, where), plant)
