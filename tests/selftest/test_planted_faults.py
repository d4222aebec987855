"""Each cause is planted once in a simulated world and named there; blind trials of all doses are in .ci/evidence."""

import numpy as np
import pytest
from worlds.generator import all_generators
from worlds.ground import new_ground
from worlds.observe import measured_floor
from worlds.plant import Dose

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.layers import Verdict
from selftest.blind import Label, judge, planted
from selftest.faults import all_faults


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(11)
    ground = new_ground(all_generators()["development"], rng)
    return ground, measured_floor(ground, rng)


@pytest.mark.parametrize("cause", sorted(all_causes()))
def test_the_top_dose_of_every_cause_is_named_and_nothing_else(cause, world):
    ground, floor = world
    found = judge(planted(ground, Label((cause,), (Dose.TOP,)), floor, np.random.default_rng(1)))
    assert found.names == {cause}


def test_a_clean_world_is_a_match(world):
    ground, floor = world
    found = judge(planted(ground, Label(), floor, np.random.default_rng(1)))
    assert (found.names, found.verdict) == (frozenset(), Verdict.MATCH)


def test_every_cause_has_a_fault_that_plants_it_and_every_fault_a_cause():
    assert set(all_faults()) == set(all_causes())
